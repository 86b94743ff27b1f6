/* sqlite_rows.c - the statements over rows, made from the tables' columns.
 *
 * Names in a statement come from tables.c; every value is bound (law 7).  A statement is made as
 * text first, which takes less time than a page of the file, and the text finds the one that was
 * prepared.
 * Not here: the file (sqlite.c).  SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_impl.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- statements ---------------------------------------------------------------------- */

static kl_err sqlite_rows_prepare(sqlite3_stmt **out, kli_sqlite_file *f, const char *sql,
                                  kl_error *e) {
    kl_err err = kli_sqlite_attach(f, e);
    if (err) return err;
    for (int i = 0; i < f->n_statements; i++)
        if (strcmp(f->statements[i].sql, sql) == 0) {
            *out = f->statements[i].prepared;
            return KL_OK;
        }
    KL_ASSERT(f->n_statements < KLI_SQLITE_STATEMENTS);
    sqlite3_prepare_v3(f->db, sql, -1, SQLITE_PREPARE_PERSISTENT, out, NULL);
    if (!*out) return kli_sqlite_fail(f, "read the schema", e);
    kli_statement *s = &f->statements[f->n_statements++];
    *s = (kli_statement){strdup(sql), *out};
    if (!s->sql) kl_oom(strlen(sql));
    return KL_OK;
}

/* The statement that `sql` says, which is freed. */
static kl_err sqlite_rows_take(sqlite3_stmt **out, kli_sqlite_file *f, kl_buf *sql, kl_error *e) {
    const kl_err err = sqlite_rows_prepare(out, f, sql->ptr, e);
    kl_buf_fini(sql);
    return err;
}

/* Always after the last step: ends the read transaction that would keep the log file from being
 * folded back. */
static void sqlite_rows_release(sqlite3_stmt *statement) {
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

/* Step a statement that gives no rows, and release it. */
static kl_err sqlite_rows_run(kli_sqlite_file *f, sqlite3_stmt *statement, const kli_store_table *t,
                              const char *what, kl_error *e) {
    char doing[64];
    snprintf(doing, sizeof doing, "%s a %s", what, t->name);
    const kl_err err =
        sqlite3_step(statement) == SQLITE_DONE ? KL_OK : kli_sqlite_fail(f, doing, e);
    sqlite_rows_release(statement);
    return err;
}

/* ---- cells --------------------------------------------------------------------------- */

/* Texts outlive the step; the empty text binds '', not NULL. */
static void bind_text(sqlite3_stmt *statement, int index, kl_str text) {
    const char *at = text.ptr ? text.ptr : "";
    KL_ASSERT(sqlite3_bind_text64(statement, index, at, text.len, SQLITE_STATIC, SQLITE_UTF8) ==
              SQLITE_OK);
}

static void bind_bytes(sqlite3_stmt *statement, int index, kl_str bytes) {
    const char *at = bytes.ptr ? bytes.ptr : "";
    KL_ASSERT(sqlite3_bind_blob64(statement, index, at, bytes.len, SQLITE_STATIC) == SQLITE_OK);
}

static void bind_cell(sqlite3_stmt *statement, int index, const void *row, const kli_column *c) {
    if (c->cell == KLI_BYTES)
        bind_bytes(statement, index, *kli_text_of(row, c));
    else if (kli_is_text(c))
        bind_text(statement, index, *kli_text_of(row, c));
    else
        KL_ASSERT(sqlite3_bind_int64(statement, index, kli_number_of(row, c)) == SQLITE_OK);
}

static void read_cell(void *row, const kli_column *c, sqlite3_stmt *statement, int index) {
    if (!kli_is_text(c)) {
        kli_set_number(row, c, sqlite3_column_int64(statement, index));
        return;
    }
    const char *at = sqlite3_column_blob(statement, index); /* of a text its bytes */
    *kli_text_of(row, c) = (kl_str){at, at ? (size_t)sqlite3_column_bytes(statement, index) : 0};
}

/* ---- put ----------------------------------------------------------------------------- */

/* "a, b, c" of the columns from one to before another, each behind `prefix`; dates are left out
 * where they stay. */
static void add_columns(kl_buf *sql, const kli_store_table *t, int from, int to, const char *prefix,
                        bool dates) {
    const char *comma = "";
    for (int i = from; i < to; i++) {
        if (!dates && t->columns[i].cell == KLI_DATE) continue;
        kl_buf_printf(sql, "%s%s%s", comma, prefix, t->columns[i].name);
        comma = ", ";
    }
}

/* A row that says the same is not written again. */
static void add_replacement(kl_buf *sql, const kli_store_table *t) {
    const char *comma = "";
    kl_buf_printf(sql, "UPDATE SET ");
    for (int i = t->n_key; i < t->n_columns; i++) {
        if (t->columns[i].cell == KLI_DATE) continue;
        kl_buf_printf(sql, "%s%s = excluded.%s", comma, t->columns[i].name, t->columns[i].name);
        comma = ", ";
    }
    kl_buf_printf(sql, " WHERE (");
    add_columns(sql, t, t->n_key, t->n_columns, "", false);
    kl_buf_printf(sql, ") IS NOT (");
    add_columns(sql, t, t->n_key, t->n_columns, "excluded.", false);
    kl_buf_printf(sql, ")");
}

static kl_buf sqlite_rows_put_text(const kli_store_table *t) {
    kl_buf sql = {0};
    kl_buf_printf(&sql, "INSERT INTO %s (", t->name);
    add_columns(&sql, t, 0, t->n_columns, "", true);
    kl_buf_printf(&sql, ") VALUES (");
    for (int i = 0; i < t->n_columns; i++) kl_buf_printf(&sql, "%s?%d", i ? ", " : "", i + 1);
    kl_buf_printf(&sql, ") ON CONFLICT (");
    add_columns(&sql, t, 0, t->n_key, "", true);
    kl_buf_printf(&sql, ") DO ");
    if (t->replaces)
        add_replacement(&sql, t);
    else
        kl_buf_printf(&sql, "NOTHING");
    return sql;
}

kl_err kli_sqlite_put(void *self, const kli_store_table *t, const void *row, kl_error *e) {
    sqlite3_stmt *put;
    kl_buf sql = sqlite_rows_put_text(t);
    const kl_err err = sqlite_rows_take(&put, self, &sql, e);
    if (err) return err;
    for (int i = 0; i < t->n_columns; i++) bind_cell(put, i + 1, row, &t->columns[i]);
    return sqlite_rows_run(self, put, t, "keep", e);
}

/* ---- which rows ---------------------------------------------------------------------- */

/* A range, not LIKE: it can use the key's index.  'g' comes after every hexadecimal digit. */
static void add_match(kl_buf *sql, const kli_match *m, int index) {
    kl_buf_printf(sql, index == 1 ? " WHERE " : " AND ");
    switch (m->how) {
    case KLI_IS:
        kl_buf_printf(sql, "%s = ?%d", m->column, index);
        break;
    case KLI_FROM:
        kl_buf_printf(sql, "%s >= ?%d", m->column, index);
        break;
    case KLI_BEGINS:
        kl_buf_printf(sql, "%s >= ?%d AND %s < ?%d || 'g'", m->column, index, m->column, index);
        break;
    }
}

static void add_matches(kl_buf *sql, const kli_query *q) {
    for (int i = 0; i < KLI_MAX_MATCHES && q->match[i].column; i++)
        add_match(sql, &q->match[i], i + 1);
}

static void bind_matches(sqlite3_stmt *statement, const kli_query *q) {
    for (int i = 0; i < KLI_MAX_MATCHES && q->match[i].column; i++) {
        const kli_match *m = &q->match[i];
        if (kli_is_text(kli_column_named(q->table, m->column)))
            bind_text(statement, i + 1, m->text);
        else
            KL_ASSERT(sqlite3_bind_int64(statement, i + 1, m->number) == SQLITE_OK);
    }
}

static void add_order(kl_buf *sql, const kli_query *q) {
    kl_buf_printf(sql, " ORDER BY ");
    if (q->order == KLI_BY_KEY)
        add_columns(sql, q->table, 0, q->table->n_key, "", true);
    else
        kl_buf_printf(sql, q->order == KLI_NEWEST_FIRST ? "rowid DESC" : "rowid");
}

enum { LIMIT_AT = KLI_MAX_MATCHES + 1 }; /* parameter of the limit, behind all matches */

static kl_buf each_text(const kli_query *q) {
    kl_buf sql = {0};
    kl_buf_printf(&sql, "SELECT ");
    add_columns(&sql, q->table, 0, q->table->n_columns, "", true);
    kl_buf_printf(&sql, " FROM %s", q->table->name);
    add_matches(&sql, q);
    add_order(&sql, q);
    kl_buf_printf(&sql, " LIMIT ?%d", LIMIT_AT);
    return sql;
}

kl_err kli_sqlite_each(void *self, const kli_query *q, kli_visit *visit, void *ctx, kl_error *e) {
    _Alignas(max_align_t) char row[KLI_ROW_BYTES] = {0};
    const kli_store_table *t = q->table;
    sqlite3_stmt *each;
    KL_ASSERT(t->row_bytes <= sizeof row);
    kl_buf sql = each_text(q);
    kl_err err = sqlite_rows_take(&each, self, &sql, e);
    if (err) return err;
    bind_matches(each, q);
    sqlite3_bind_int64(each, LIMIT_AT, q->limit > 0 ? q->limit : -1);
    int step = SQLITE_DONE;
    while (!err && (step = sqlite3_step(each)) == SQLITE_ROW) {
        for (int i = 0; i < t->n_columns; i++) read_cell(row, &t->columns[i], each, i);
        err = visit(ctx, row);
    }
    if (!err && step != SQLITE_DONE) {
        char doing[64];
        snprintf(doing, sizeof doing, "read a %s", t->name);
        err = kli_sqlite_fail(self, doing, e);
    }
    sqlite_rows_release(each);
    return err;
}

kl_err kli_sqlite_drop(void *self, const kli_query *q, kl_error *e) {
    sqlite3_stmt *drop;
    kl_buf sql = {0};
    kl_buf_printf(&sql, "DELETE FROM %s", q->table->name);
    add_matches(&sql, q);
    const kl_err err = sqlite_rows_take(&drop, self, &sql, e);
    if (err) return err;
    bind_matches(drop, q);
    return sqlite_rows_run(self, drop, q->table, "drop", e);
}
