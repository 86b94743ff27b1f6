/* postgresql_impl.h - the inside of the member that keeps its rows in a PostgreSQL database.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_POSTGRESQL_IMPL_H
#define KL_STORE_POSTGRESQL_IMPL_H
#include "store/pq_api.h"
#include "store/store_ops.h"

#if KL_HAVE_PQ

/* The number of the advisory lock under which a transaction has the journal to itself: "KLin". */
#define KLI_POSTGRESQL_LOCK "1263298926"
enum { KLI_POSTGRESQL_PATIENCE_MS = 5000 };

typedef struct {
    const kli_pq *pq;
    PGconn *db; /* NULL: detached, or the server went away; the next op connects */
    char *url, *shown;
    bool begun; /* a transaction is open, or was when the server went away */
} kli_postgresql_database;

/* Connected.  Within a transaction only to the server that began it.  Errors as of opening. */
KL_MUST_USE kl_err kli_postgresql_attach(kli_postgresql_database *p, kl_error *e);
/* What the server said (`result` NULL: the connection), as one of ours, with a hint. */
kl_err kli_postgresql_fail(kli_postgresql_database *p, const PGresult *result, const char *doing,
                           kl_error *e);
/* The server is not there any more, and what was sent may not have arrived.  Lets go of it. */
bool kli_postgresql_lost(kli_postgresql_database *p);

/* The ops over rows: postgresql_rows.c */
kl_err kli_postgresql_put(void *self, const kli_store_table *t, const void *row, kl_error *e);
kl_err kli_postgresql_each(void *self, const kli_query *q, kli_visit *visit, void *ctx,
                           kl_error *e);
kl_err kli_postgresql_drop(void *self, const kli_query *q, kl_error *e);

#endif
#endif
