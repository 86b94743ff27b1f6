/* store_impl.h - the inside of the store, for the file that owns each table.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_STORE_IMPL_H
#define KL_STORE_STORE_IMPL_H
#include <klineage/store.h>
#include <sqlite3.h>

/* Every statement that is ever run on rows, prepared on first use and kept. */
typedef enum {
    KLI_VERDICT_GET, KLI_VERDICT_PUT, KLI_VERDICT_FIND, KLI_VERDICT_LIST, KLI_VERDICT_LIST_OF_TASK,
    KLI_STATEMENTS
} kli_statement;

struct kl_store {
    sqlite3      *db;
    char         *path; /* for messages */
    sqlite3_stmt *statements[KLI_STATEMENTS];
};

/* The statement, reset and without bindings. */
KL_MUST_USE kl_err kli_store_statement(sqlite3_stmt **out, kl_store *s, kli_statement which, kl_error *e);
/* Always after the last step: ends the read transaction that would keep the log file from being folded back. */
void   kli_store_release(sqlite3_stmt *statement);
/* What SQLite just said, as one of ours, with a hint. */
kl_err kli_store_fail(const kl_store *s, const char *doing, kl_error *e);
/* Bind text that outlives the step; the empty text binds '', not NULL. */
void   kli_store_bind(sqlite3_stmt *statement, int index, kl_str text);
/* Column of the current row, borrowed until the next step. */
kl_str kli_store_column(sqlite3_stmt *statement, int column);
#endif
