/* pq_api.h - libpq, loaded when a journal in PostgreSQL is first opened.
 *
 * Only its header is used at build time, for types and numbers; without the header KL_HAVE_PQ is 0
 * and such a journal is refused with the package's name.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_PQ_API_H
#define KL_STORE_PQ_API_H
#include <klineage/base.h>

#if KL_HAVE_PQ
#include <libpq-fe.h>

/* X(result, name, parameters): the symbol is PQNAME. */
#define KLI_PQ_FUNCTIONS(X)                                                                        \
    X(PGconn *, connectdbParams, (const char *const *, const char *const *, int))                  \
    X(ConnStatusType, status, (const PGconn *))                                                    \
    X(PGTransactionStatusType, transactionStatus, (const PGconn *))                                \
    X(char *, errorMessage, (const PGconn *))                                                      \
    X(char *, db, (const PGconn *))                                                                \
    X(PQnoticeProcessor, setNoticeProcessor, (PGconn *, PQnoticeProcessor, void *))                \
    X(void, finish, (PGconn *))                                                                    \
    X(PGresult *, exec, (PGconn *, const char *))                                                  \
    X(int, sendQueryParams,                                                                        \
      (PGconn *, const char *, int, const Oid *, const char *const *, const int *, const int *,    \
       int))                                                                                       \
    X(int, setSingleRowMode, (PGconn *))                                                           \
    X(PGresult *, getResult, (PGconn *))                                                           \
    X(ExecStatusType, resultStatus, (const PGresult *))                                            \
    X(char *, resultErrorField, (const PGresult *, int))                                           \
    X(int, ntuples, (const PGresult *))                                                            \
    X(char *, getvalue, (const PGresult *, int, int))                                              \
    X(int, getlength, (const PGresult *, int, int))                                                \
    X(void, clear, (PGresult *))

typedef struct {
#define KLI_PQ_SLOT(result, name, parameters) result(*name) parameters;
    KLI_PQ_FUNCTIONS(KLI_PQ_SLOT)
#undef KLI_PQ_SLOT
} kli_pq;
#else
typedef struct {
    int none;
} kli_pq;
#endif

/* Loads it once in a process; $KLINEAGE_LIBPQ, else the system's.  Errors: KL_ENODEV. */
KL_MUST_USE kl_err kli_pq_load(const kli_pq **out, kl_error *e);

#endif
