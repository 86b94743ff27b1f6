/* verdict.c - the table of verdicts; nothing else writes it.
 *
 * A verdict is found by the hash of everything it depends on, so a row never changes: put is insert-or-nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include <klineage/limits.h>
#include <stdio.h>

kl_err kl_store_verdict_get(kl_str *json, kl_store *s, kl_arena *a, const char *key, kl_error *e) {
    sqlite3_stmt *get;
    kl_err err = kli_store_statement(&get, s, KLI_VERDICT_GET, e);
    if (err) return err;
    kli_store_bind(get, 1, kl_str_of(key));
    switch (sqlite3_step(get)) {
    case SQLITE_ROW:
        *json = kl_arena_copy(a, kli_store_column(get, 0));
        err = KL_OK;
        break;
    case SQLITE_DONE: err = kl_fail(e, KL_ENOENT, s->path, "no verdict with the key %s", key); break;
    default: err = kli_store_fail(s, "read a verdict", e);
    }
    kli_store_release(get);
    return err;
}

kl_err kl_store_verdict_put(kl_store *s, const kl_store_verdict *v, kl_error *e) {
    if (v->json.len > KL_MAX_JSON_BYTES)
        return kl_fail(e, KL_ELIMIT, s->path, "a verdict of %zu bytes; the limit is %u", v->json.len,
                       KL_MAX_JSON_BYTES);
    sqlite3_stmt *put;
    kl_err err = kli_store_statement(&put, s, KLI_VERDICT_PUT, e);
    if (err) return err;
    const kl_str columns[] = {v->key, v->task, v->kernel, v->platform, v->outcome, v->json};
    for (size_t i = 0; i < KL_COUNT(columns); i++) kli_store_bind(put, (int)i + 1, columns[i]);
    int step = sqlite3_step(put);
    if (step == SQLITE_CONSTRAINT_NOTNULL) err = kl_fail(e, KL_EINVAL, s->path, "this verdict is no JSON");
    else if (step != SQLITE_DONE) err = kli_store_fail(s, "keep a verdict", e);
    kli_store_release(put);
    return err;
}

kl_err kl_store_verdict_find(char key[65], kl_store *s, const char *prefix, kl_error *e) {
    kl_err err = kli_store_prefix(s, prefix, "klineage verdict list", e);
    if (err) return err;
    sqlite3_stmt *find;
    err = kli_store_statement(&find, s, KLI_VERDICT_FIND, e);
    if (err) return err;
    kli_store_bind(find, 1, kl_str_of(prefix));
    int step = sqlite3_step(find);
    if (step == SQLITE_ROW) {
        snprintf(key, 65, "%.*s", KL_STR_ARG(kli_store_column(find, 0)));
        step = sqlite3_step(find);
        if (step == SQLITE_ROW) err = kl_fail(e, KL_EINVAL, s->path, "several keys begin with %s", prefix);
    } else if (step == SQLITE_DONE) {
        err = kl_fail(e, KL_ENOENT, s->path, "no key begins with %s", prefix);
    }
    if (step != SQLITE_ROW && step != SQLITE_DONE) err = kli_store_fail(s, "look for a verdict", e);
    kli_store_release(find);
    return err;
}

static kl_store_verdict row_of(sqlite3_stmt *list) {
    return (kl_store_verdict){
        .key = kli_store_column(list, 0),
        .task = kli_store_column(list, 1),
        .kernel = kli_store_column(list, 2),
        .platform = kli_store_column(list, 3),
        .outcome = kli_store_column(list, 4),
        .json = kli_store_column(list, 5),
        .created = kli_store_column(list, 6),
    };
}

kl_err kl_store_verdict_each(kl_store *s, const kl_store_verdict_query *q,
                             kl_err (*visit)(void *ctx, const kl_store_verdict *v), void *ctx, kl_error *e) {
    sqlite3_stmt *list;
    kl_err        err = kli_store_statement(&list, s, q->task ? KLI_VERDICT_LIST_OF_TASK : KLI_VERDICT_LIST, e);
    if (err) return err;
    const char *const wanted[] = {q->task, q->kernel, q->platform, q->outcome};
    for (size_t i = 0; i < KL_COUNT(wanted); i++)
        if (wanted[i]) kli_store_bind(list, (int)i + 1, kl_str_of(wanted[i])); /* unbound is NULL: any */
    sqlite3_bind_int64(list, 5, q->limit > 0 ? q->limit : -1);
    int step = SQLITE_DONE;
    while (!err && (step = sqlite3_step(list)) == SQLITE_ROW) {
        kl_store_verdict row = row_of(list);
        err = visit(ctx, &row);
    }
    if (!err && step != SQLITE_DONE) err = kli_store_fail(s, "list verdicts", e);
    kli_store_release(list);
    return err;
}

typedef struct {
    kl_arena         *arena;
    kl_store_verdict *rows;
    size_t            n, cap;
} collection;

static kl_err collect(void *ctx, const kl_store_verdict *v) {
    collection *c = ctx;
    kl_arena   *a = c->arena;
    c->rows = kli_store_grow(a, c->rows, c->n, &c->cap, sizeof *c->rows);
    c->rows[c->n++] = (kl_store_verdict){
        .key = kl_arena_copy(a, v->key),
        .task = kl_arena_copy(a, v->task),
        .kernel = kl_arena_copy(a, v->kernel),
        .platform = kl_arena_copy(a, v->platform),
        .outcome = kl_arena_copy(a, v->outcome),
        .json = kl_arena_copy(a, v->json),
        .created = kl_arena_copy(a, v->created),
    };
    return KL_OK;
}

kl_err kl_store_verdict_list(kl_store_verdict **rows, size_t *n, kl_store *s, kl_arena *a,
                             const kl_store_verdict_query *q, kl_error *e) {
    collection c = {.arena = a};
    kl_err     err = kl_store_verdict_each(s, q, collect, &c, e);
    *rows = c.rows;
    *n = c.n;
    return err;
}
