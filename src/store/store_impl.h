/* store_impl.h - the inside of the store, for the file that owns each table.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_STORE_STORE_IMPL_H
#define KL_STORE_STORE_IMPL_H
#include <klineage/store.h>
#include <sqlite3.h>

/* Every statement that is ever run on rows, prepared on first use and kept. */
typedef enum {
    KLI_VERDICT_GET, KLI_VERDICT_PUT, KLI_VERDICT_FIND, KLI_VERDICT_LIST, KLI_VERDICT_LIST_OF_TASK,
    KLI_BLOB_GET, KLI_BLOB_PUT,
    KLI_RUN_PUT, KLI_RUN_LIST, KLI_RUN_FIND,
    KLI_EFFECT_GET, KLI_EFFECT_PUT, KLI_EFFECT_LIST,
    KLI_CHARGE_LAST, KLI_CHARGE_SUMS, KLI_CHARGE_RESERVE, KLI_CHARGE_STATE, KLI_CHARGE_SETTLE, KLI_CHARGE_BREAK_OFF,
    KLI_CHARGE_LIST,
    KLI_STEP_PUT, KLI_STEP_CUT, KLI_STEP_LIST,
    KLI_RECORD_PUT, KLI_RECORD_BY_NAME, KLI_RECORD_BY_ID, KLI_RECORD_LIST,
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
/* The same, copied. */
kl_str kli_store_copy(kl_arena *a, sqlite3_stmt *statement, int column);
/* Step a statement that gives no rows, and release it. */
KL_MUST_USE kl_err kli_store_do(kl_store *s, sqlite3_stmt *statement, const char *doing, kl_error *e);
/* One transaction that may write from its beginning on, so that what it reads cannot change under it. */
KL_MUST_USE kl_err kli_store_begin(kl_store *s, const char *doing, kl_error *e);
/* Commit when `err` is KL_OK, else roll back; gives `err`, or why the commit failed. */
KL_MUST_USE kl_err kli_store_end(kl_store *s, kl_err err, const char *doing, kl_error *e);
/* Is this the beginning of a key: 4 to 64 digits?  `shown_by`: the command that prints such keys. */
KL_MUST_USE kl_err kli_store_prefix(const kl_store *s, const char *prefix, const char *shown_by, kl_error *e);
/* Room for one more row behind `n`: `rows`, or a copy of twice its size. */
void  *kli_store_grow(kl_arena *a, void *rows, size_t n, size_t *cap, size_t row_bytes);
#endif
