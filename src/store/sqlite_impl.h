/* sqlite_impl.h - the inside of the member that keeps its rows in one SQLite file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_SQLITE_IMPL_H
#define KL_STORE_SQLITE_IMPL_H
#include "store/store_ops.h"
#include <sqlite3.h>

#define KLI_SQLITE_APPLICATION 0x4b4c696e /* "KLin" */

enum { KLI_SQLITE_STATEMENTS = 64 }; /* kinds of questions that are ever asked; asserted */

/* A statement, prepared when it is first needed and kept: its text finds it. */
typedef struct {
    char *sql;
    sqlite3_stmt *prepared;
} kli_statement;

typedef struct {
    sqlite3 *db; /* NULL: detached; the next op opens it */
    char *path;
    int version; /* of the schema that is in the file, as far as is known: for who has to save it */
    kli_statement statements[KLI_SQLITE_STATEMENTS];
    int n_statements;
} kli_sqlite_file;

/* The file, open.  Errors as of opening it. */
KL_MUST_USE kl_err kli_sqlite_attach(kli_sqlite_file *f, kl_error *e);
/* What SQLite just said, as one of ours, with a hint. */
kl_err kli_sqlite_fail(const kli_sqlite_file *f, const char *doing, kl_error *e);

/* The ops over rows: sqlite_rows.c */
kl_err kli_sqlite_put(void *self, const kli_store_table *t, const void *row, kl_error *e);
kl_err kli_sqlite_each(void *self, const kli_query *q, kli_visit *visit, void *ctx, kl_error *e);
kl_err kli_sqlite_drop(void *self, const kli_query *q, kl_error *e);

#endif
