/* postgresql_rows.c - the statements over rows, made from the tables' columns.
 *
 * Names in a statement come from tables.c; every value is a parameter (law 7), in libpq's binary
 * form: a text is its bytes, a number eight of them, big end first.  The server refuses what is no
 * UTF-8, as it refuses what its checks forbid.
 * Not here: the connection (postgresql.c).  SPDX-License-Identifier: Apache-2.0 */
#include "store/postgresql_impl.h"

#if KL_HAVE_PQ
#include <endian.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PARAMETERS = 32 };

typedef struct {
    kl_buf sql;
    int n;
    const char *values[MOST_PARAMETERS];
    int lengths[MOST_PARAMETERS];
    uint64_t numbers[MOST_PARAMETERS]; /* in the network's order, where a value is one */
    unsigned char flags[MOST_PARAMETERS];
} pq_statement;

/* ---- parameters ---------------------------------------------------------------------- */

static const char *pq_type_of(const kli_column *c) {
    return c->cell == KLI_BYTES    ? "bytea"
           : c->cell == KLI_NUMBER ? "bigint"
           : c->cell == KLI_FLAG   ? "boolean"
                                   : "text";
}

static void pq_add_value(pq_statement *s, const void *at, size_t bytes) {
    KL_ASSERT(s->n < MOST_PARAMETERS && bytes <= INT32_MAX);
    s->values[s->n] = at ? at : "";
    s->lengths[s->n++] = (int)bytes;
}

static void pq_add_text(pq_statement *s, kl_str text) { pq_add_value(s, text.ptr, text.len); }

static void pq_add_number(pq_statement *s, int64_t number) {
    s->numbers[s->n] = htobe64((uint64_t)number);
    pq_add_value(s, &s->numbers[s->n], sizeof s->numbers[0]);
}

static void pq_add_cell(pq_statement *s, const void *row, const kli_column *c) {
    if (kli_is_text(c)) {
        pq_add_text(s, *kli_text_of(row, c));
    } else if (c->cell == KLI_FLAG) {
        s->flags[s->n] = kli_number_of(row, c) != 0;
        pq_add_value(s, &s->flags[s->n], 1);
    } else {
        pq_add_number(s, kli_number_of(row, c));
    }
}

/* ---- running ------------------------------------------------------------------------- */

static kl_err pq_send(kli_postgresql_database *p, const pq_statement *s, const char *doing,
                      kl_error *e) {
    int formats[MOST_PARAMETERS];
    for (int i = 0; i < s->n; i++) formats[i] = 1; /* binary */
    return p->pq->sendQueryParams(p->db, s->sql.ptr, s->n, NULL, s->values, s->lengths, formats, 1)
               ? KL_OK
               : kli_postgresql_fail(p, NULL, doing, e);
}

static void pq_read_cell(void *row, const kli_column *c, const kli_pq *pq, const PGresult *r,
                         int i) {
    const char *at = pq->getvalue(r, 0, i); /* of NULL the empty text */
    const int bytes = pq->getlength(r, 0, i);
    if (kli_is_text(c)) {
        *kli_text_of(row, c) = (kl_str){at, (size_t)bytes};
    } else if (c->cell == KLI_FLAG) {
        kli_set_number(row, c, bytes == 1 && *at);
    } else {
        uint64_t number = 0;
        KL_ASSERT(bytes == (int)sizeof number); /* a bigint that is not NULL: the schema says so */
        memcpy(&number, at, sizeof number);
        kli_set_number(row, c, (int64_t)be64toh(number));
    }
}

typedef struct {
    const kli_store_table *table;
    kli_visit *visit; /* NULL: no rows are expected */
    void *ctx;
    bool visited;
} pq_reader;

static kl_err pq_read_result(kli_postgresql_database *p, pq_reader *r, PGresult *result,
                             const char *doing, kl_error *e) {
    _Alignas(max_align_t) char row[KLI_ROW_BYTES] = {0};
    const ExecStatusType got = p->pq->resultStatus(result);
    if (got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK) return KL_OK; /* the end of it */
    if (got != PGRES_SINGLE_TUPLE) return kli_postgresql_fail(p, result, doing, e);
    KL_ASSERT(r->visit && r->table->row_bytes <= sizeof row);
    for (int i = 0; i < r->table->n_columns; i++)
        pq_read_cell(row, &r->table->columns[i], p->pq, result, i);
    r->visited = true;
    return r->visit(r->ctx, row);
}

/* All results are fetched, also after a visitor that stops: the next statement needs the line. */
static kl_err pq_run_once(kli_postgresql_database *p, const pq_statement *s, pq_reader *r,
                          const char *doing, kl_error *e) {
    PGresult *result;
    kl_err err = kli_postgresql_attach(p, e);
    if (!err) err = pq_send(p, s, doing, e);
    if (err) return err;
    if (r->visit) p->pq->setSingleRowMode(p->db);
    while ((result = p->pq->getResult(p->db))) {
        if (!err) err = pq_read_result(p, r, result, doing, e);
        p->pq->clear(result);
    }
    return err;
}

/* Once more where the server went away: the same row put twice is one row, and no visitor has seen
 * anything. */
static kl_err pq_run(kli_postgresql_database *p, pq_statement *s, pq_reader *r, const char *what,
                     kl_error *e) {
    char doing[64];
    snprintf(doing, sizeof doing, "%s a %s", what, r->table->name);
    kl_err err = pq_run_once(p, s, r, doing, e);
    if (err && kli_postgresql_lost(p) && !p->begun && !r->visited)
        err = pq_run_once(p, s, r, doing, e);
    kl_buf_fini(&s->sql);
    return err;
}

/* ---- put ----------------------------------------------------------------------------- */

/* "a, b, c" of the columns from one to before another, each behind `prefix`; dates are left out
 * where they stay. */
static void pq_add_names(kl_buf *sql, const kli_store_table *t, int from, int to,
                         const char *prefix, bool dates) {
    const char *comma = "";
    for (int i = from; i < to; i++) {
        if (!dates && t->columns[i].cell == KLI_DATE) continue;
        kl_buf_printf(sql, "%s%s%s", comma, prefix, t->columns[i].name);
        comma = ", ";
    }
}

/* A row that says the same is not written again. */
static void pq_add_update(kl_buf *sql, const kli_store_table *t) {
    const char *comma = "";
    char own[64];
    snprintf(own, sizeof own, "%s.", t->name);
    kl_buf_printf(sql, "UPDATE SET ");
    for (int i = t->n_key; i < t->n_columns; i++) {
        if (t->columns[i].cell == KLI_DATE) continue;
        kl_buf_printf(sql, "%s%s = excluded.%s", comma, t->columns[i].name, t->columns[i].name);
        comma = ", ";
    }
    kl_buf_printf(sql, " WHERE (");
    pq_add_names(sql, t, t->n_key, t->n_columns, own, false);
    kl_buf_printf(sql, ") IS DISTINCT FROM (");
    pq_add_names(sql, t, t->n_key, t->n_columns, "excluded.", false);
    kl_buf_printf(sql, ")");
}

/* The lock is shared by single puts, and held already within a transaction. */
static void pq_add_insert(kl_buf *sql, const kli_store_table *t) {
    kl_buf_printf(sql, "INSERT INTO %s (", t->name);
    pq_add_names(sql, t, 0, t->n_columns, "", true);
    kl_buf_printf(sql, ") SELECT ");
    for (int i = 0; i < t->n_columns; i++)
        kl_buf_printf(sql, "%s$%d::%s", i ? ", " : "", i + 1, pq_type_of(&t->columns[i]));
    kl_buf_printf(sql, " FROM pg_advisory_xact_lock_shared(" KLI_POSTGRESQL_LOCK ") ON CONFLICT (");
    pq_add_names(sql, t, 0, t->n_key, "", true);
    kl_buf_printf(sql, ") DO ");
    if (t->replaces)
        pq_add_update(sql, t);
    else
        kl_buf_printf(sql, "NOTHING");
}

kl_err kli_postgresql_put(void *self, const kli_store_table *t, const void *row, kl_error *e) {
    pq_statement s = {0};
    pq_add_insert(&s.sql, t);
    for (int i = 0; i < t->n_columns; i++) pq_add_cell(&s, row, &t->columns[i]);
    return pq_run(self, &s, &(pq_reader){.table = t}, "keep", e);
}

/* ---- which rows ---------------------------------------------------------------------- */

/* 'g' comes after every hexadecimal digit, and keys are compared as bytes. */
static void pq_add_match(pq_statement *s, const kli_match *m, const char *type) {
    const int at = s->n + 1;
    kl_buf_printf(&s->sql, at == 1 ? " WHERE " : " AND ");
    if (m->how == KLI_IS) kl_buf_printf(&s->sql, "%s = $%d::%s", m->column, at, type);
    if (m->how == KLI_FROM) kl_buf_printf(&s->sql, "%s >= $%d::%s", m->column, at, type);
    if (m->how == KLI_BEGINS)
        kl_buf_printf(&s->sql, "%s >= $%d::text AND %s < $%d::text || 'g'", m->column, at,
                      m->column, at);
}

static void pq_add_matches(pq_statement *s, const kli_query *q) {
    for (int i = 0; i < KLI_MAX_MATCHES && q->match[i].column; i++) {
        const kli_match *m = &q->match[i];
        const kli_column *c = kli_column_named(q->table, m->column);
        pq_add_match(s, m, pq_type_of(c));
        if (kli_is_text(c))
            pq_add_text(s, m->text);
        else
            pq_add_number(s, m->number);
    }
}

static void pq_add_order(kl_buf *sql, const kli_query *q) {
    kl_buf_printf(sql, " ORDER BY ");
    if (q->order == KLI_BY_KEY)
        pq_add_names(sql, q->table, 0, q->table->n_key, "", true);
    else
        kl_buf_printf(sql, q->order == KLI_NEWEST_FIRST ? "rowid DESC" : "rowid");
}

kl_err kli_postgresql_each(void *self, const kli_query *q, kli_visit *visit, void *ctx,
                           kl_error *e) {
    pq_statement s = {0};
    kl_buf_printf(&s.sql, "SELECT ");
    pq_add_names(&s.sql, q->table, 0, q->table->n_columns, "", true);
    kl_buf_printf(&s.sql, " FROM %s", q->table->name);
    pq_add_matches(&s, q);
    pq_add_order(&s.sql, q);
    if (q->limit > 0) {
        kl_buf_printf(&s.sql, " LIMIT $%d::bigint", s.n + 1);
        pq_add_number(&s, q->limit);
    }
    return pq_run(self, &s, &(pq_reader){.table = q->table, .visit = visit, .ctx = ctx}, "read", e);
}

kl_err kli_postgresql_drop(void *self, const kli_query *q, kl_error *e) {
    pq_statement s = {0};
    kl_buf_printf(&s.sql, "DELETE FROM %s", q->table->name);
    pq_add_matches(&s, q);
    return pq_run(self, &s, &(pq_reader){.table = q->table}, "drop", e);
}

#endif
