/* verdict.c - the table of verdicts; nothing else writes it.
 *
 * A verdict is found by the hash of everything it depends on, so a row never changes: put is
 * insert-or-nothing.  Its text is packed (pack.c); a row of a journal that began under schema 2
 * still has it as it is.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include <klineage/limits.h>
#include <stdio.h>

/* The text of a row, however it lies there. */
static kl_err unpack_row(kl_str *json, kl_store *s, kl_arena *a, const kli_verdict_row *row,
                         kl_error *e) {
    if (row->packed.len) return kli_unpack(json, s, a, row->packed, e);
    *json = kl_arena_copy(a, row->v.json);
    return KL_OK;
}

kl_err kl_store_verdict_get(kl_str *json, kl_store *s, kl_arena *a, const char *key, kl_error *e) {
    kli_verdict_row row;
    const kli_query q = {.table = &kli_verdicts, .match = {{"key", .text = kl_str_of(key)}}};
    const kl_err err = kli_first(&row, s, a, &q, e);
    if (err == KL_ENOENT) return kl_fail(e, err, s->where, "no verdict with the key %s", key);
    return err ? err : unpack_row(json, s, a, &row, e);
}

kl_err kl_store_verdict_put(kl_store *s, const kl_store_verdict *v, kl_error *e) {
    if (v->json.len > KL_MAX_JSON_BYTES)
        return kl_fail(e, KL_ELIMIT, s->where, "a verdict of %zu bytes; the limit is %u",
                       v->json.len, KL_MAX_JSON_BYTES);
    if (!kli_is_json(v->json)) return kl_fail(e, KL_EINVAL, s->where, "this verdict is no JSON");
    kl_arena *scratch = kl_arena_new();
    kli_verdict_row row = {.v = *v, .packed = kli_pack(s, scratch, v->json)};
    row.v.json = (kl_str){0};
    const kl_err err = kli_put(s, &kli_verdicts, &row, e);
    kl_arena_free(scratch);
    return err;
}

kl_err kl_store_verdict_find(char key[65], kl_store *s, const char *prefix, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    kli_verdict_row row;
    const kli_query q = {.table = &kli_verdicts,
                         .match = {{"key", KLI_BEGINS, .text = kl_str_of(prefix)}}};
    const kl_err err = kli_find(&row, s, scratch, &q, "klineage verdict list", e);
    if (!err) snprintf(key, 65, "%.*s", KL_STR_ARG(row.v.key));
    kl_arena_free(scratch);
    return err;
}

/* ---- many ---------------------------------------------------------------------------- */

static kli_query query_of(const kl_store_verdict_query *wanted) {
    const char *const columns[] = {"task", "kernel", "platform", "outcome"};
    const char *const values[] = {wanted->task, wanted->kernel, wanted->platform, wanted->outcome};
    kli_query q = {.table = &kli_verdicts, .order = KLI_NEWEST_FIRST, .limit = wanted->limit};
    for (size_t i = 0, n = 0; i < KL_COUNT(columns); i++)
        if (values[i]) q.match[n++] = (kli_match){columns[i], .text = kl_str_of(values[i])};
    return q;
}

typedef struct {
    kl_store *store;
    kl_err (*visit)(void *ctx, const kl_store_verdict *v);
    void *ctx;
    kl_error *e;
} visitor;

static kl_err visit_unpacked(void *ctx, const void *found) {
    const visitor *v = ctx;
    const kli_verdict_row *row = found;
    kl_arena *scratch = kl_arena_new();
    kl_store_verdict verdict = row->v;
    kl_err err = unpack_row(&verdict.json, v->store, scratch, row, v->e);
    if (!err) err = v->visit(v->ctx, &verdict);
    kl_arena_free(scratch);
    return err;
}

kl_err kl_store_verdict_each(kl_store *s, const kl_store_verdict_query *wanted,
                             kl_err (*visit)(void *ctx, const kl_store_verdict *v), void *ctx,
                             kl_error *e) {
    const kli_query q = query_of(wanted);
    return s->ops->each(s->self, &q, visit_unpacked, &(visitor){s, visit, ctx, e}, e);
}

kl_err kl_store_verdict_list(kl_store_verdict **rows, size_t *n, kl_store *s, kl_arena *a,
                             const kl_store_verdict_query *wanted, kl_error *e) {
    const kli_query q = query_of(wanted);
    kli_verdict_row *found;
    kl_err err = kli_list(&found, n, s, a, &q, e);
    if (err) return err;
    *rows = KL_ARRAY(a, kl_store_verdict, *n + 1);
    for (size_t i = 0; !err && i < *n; i++) {
        (*rows)[i] = found[i].v;
        err = unpack_row(&(*rows)[i].json, s, a, &found[i], e);
    }
    return err;
}
