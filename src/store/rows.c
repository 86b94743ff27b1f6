/* rows.c - texts by content, runs, effects, steps, and documents of other modules; nothing else
 * writes their tables.
 *
 *   blob    text by its hash: a conversation that only grows, and a kernel that many steps name,
 *           are each kept once
 *   run     what identifies it; a known id keeps its row
 *   effect  put once and never changed: an answer that was used stays the answer (law 8)
 *   step    its place in its track is its key: a line that is run again writes the same rows
 *   record  a known (kind, id) gets the new text and keeps its place and its date
 *
 * Not here: what a request, an answer, a step or a document says (run/, lineage/), what a call cost
 * (charge.c).  SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include "base/hash.h"
#include <klineage/limits.h>
#include <string.h>

/* ---- blobs --------------------------------------------------------------------------- */

kl_err kl_store_blob_put(char hash[65], kl_store *s, kl_str text, kl_error *e) {
    if (text.len > KL_MAX_JSON_BYTES)
        return kl_fail(e, KL_ELIMIT, s->where, "a text of %zu bytes; the limit is %u", text.len,
                       KL_MAX_JSON_BYTES);
    memcpy(hash, kli_hash_of(text).hex, 65);
    return kli_put(s, &kli_blobs, &(kli_blob_row){.hash = kl_str_of(hash), .text = text}, e);
}

kl_err kl_store_blob_get(kl_str *text, kl_store *s, kl_arena *a, kl_str hash, kl_error *e) {
    kli_blob_row row;
    const kl_err err = kli_first(
        &row, s, a, &(kli_query){.table = &kli_blobs, .match = {{"hash", .text = hash}}}, e);
    if (err == KL_ENOENT)
        return kl_fail(e, err, s->where, "no text with the hash %.*s", KL_STR_ARG(hash));
    if (!err) *text = row.text;
    return err;
}

/* ---- runs ---------------------------------------------------------------------------- */

kl_err kl_store_run_put(kl_store *s, const kl_store_run *r, kl_error *e) {
    return kli_put(s, &kli_runs, r, e);
}

kl_err kl_store_run_list(kl_store_run **rows, size_t *n, kl_store *s, kl_arena *a, kl_error *e) {
    return kli_list(rows, n, s, a, &(kli_query){.table = &kli_runs, .order = KLI_NEWEST_FIRST}, e);
}

static kl_err last_run(kl_store_run *out, kl_store *s, kl_arena *a, kl_error *e) {
    kl_store_run *rows;
    size_t n;
    const kl_err err = kl_store_run_list(&rows, &n, s, a, e);
    if (err) return err;
    if (n == 0) {
        kl_fail(e, KL_ENOENT, s->where, "no run yet, so there is no last one");
        return kl_hint(e, "klineage walk, lift, admit, optimize and experiment make them");
    }
    *out = rows[0];
    return KL_OK;
}

kl_err kl_store_run_find(kl_store_run *out, kl_store *s, kl_arena *a, const char *prefix,
                         kl_error *e) {
    if (strcmp(prefix, "last") == 0) return last_run(out, s, a, e); /* an id is hexadecimal */
    const kli_query q = {.table = &kli_runs,
                         .match = {{"id", KLI_BEGINS, .text = kl_str_of(prefix)}}};
    return kli_find(out, s, a, &q, "klineage run list", e);
}

/* ---- effects ------------------------------------------------------------------------- */

kl_err kl_store_effect_get(kl_store_effect *out, kl_store *s, kl_arena *a, const char *key,
                           kl_error *e) {
    const kli_query q = {.table = &kli_effects, .match = {{"key", .text = kl_str_of(key)}}};
    const kl_err err = kli_first(out, s, a, &q, e);
    return err == KL_ENOENT ? kl_fail(e, err, s->where, "no effect with the key %s", key) : err;
}

kl_err kl_store_effect_put(kl_store *s, const kl_store_effect *f, kl_error *e) {
    if (!kl_str_eq(f->kind, KL_S("ask")) && !kl_str_eq(f->kind, KL_S("judge")))
        return kl_fail(e, KL_EINVAL, s->where, "an effect asks or judges; '%.*s' is neither",
                       KL_STR_ARG(f->kind));
    return kli_put(s, &kli_effects, f, e);
}

kl_err kl_store_effect_list(kl_store_effect **rows, size_t *n, kl_store *s, kl_arena *a,
                            const char *run, const char *track, kl_error *e) {
    kli_query q = {.table = &kli_effects, .match = {{"run", .text = kl_str_of(run)}}};
    if (track) q.match[1] = (kli_match){"track", .text = kl_str_of(track)};
    return kli_list(rows, n, s, a, &q, e);
}

/* ---- steps --------------------------------------------------------------------------- */

kl_err kl_store_step_put(kl_store *s, const kl_store_step *row, kl_error *e) {
    return kli_put(s, &kli_steps, row, e);
}

kl_err kl_store_step_cut(kl_store *s, const char *run, const char *track, int64_t n, kl_error *e) {
    const kli_query q = {.table = &kli_steps,
                         .match = {{"run", .text = kl_str_of(run)},
                                   {"track", .text = kl_str_of(track)},
                                   {"n", KLI_FROM, .number = n}}};
    return s->ops->drop(s->self, &q, e);
}

kl_err kl_store_step_list(kl_store_step **rows, size_t *n, kl_store *s, kl_arena *a,
                          const char *run, kl_error *e) {
    const kli_query q = {
        .table = &kli_steps, .match = {{"run", .text = kl_str_of(run)}}, .order = KLI_BY_KEY};
    return kli_list(rows, n, s, a, &q, e);
}

/* ---- records ------------------------------------------------------------------------- */

kl_err kl_store_record_put(kl_store *s, const kl_store_record *r, kl_error *e) {
    return kli_put(s, &kli_records, r, e);
}

kl_err kl_store_record_find(kl_store_record *out, kl_store *s, kl_arena *a, const char *kind,
                            const char *id_or_name, kl_error *e) {
    const kl_str what = kl_str_of(id_or_name);
    kli_query q = {.table = &kli_records,
                   .match = {{"kind", .text = kl_str_of(kind)}, {"name", .text = what}},
                   .order = KLI_NEWEST_FIRST,
                   .limit = 2};
    kl_store_record *rows;
    size_t n = 0;
    kl_err err = kli_first(out, s, a, &q, e);
    if (err != KL_ENOENT) return err;
    q.match[1] = (kli_match){"id", KLI_BEGINS, .text = what};
    err = kli_is_prefix(id_or_name) ? kli_list(&rows, &n, s, a, &q, e) : KL_OK;
    if (err) return err;
    if (n == 1) *out = rows[0];
    if (n == 1) return KL_OK;
    if (n)
        return kl_fail(e, KL_EINVAL, s->where, "several ids of a %s begin with %s", kind,
                       id_or_name);
    return kl_fail(e, KL_ENOENT, s->where, "no %s has the name or id '%s'", kind, id_or_name);
}

kl_err kl_store_record_latest(kl_store_record **rows, size_t *n, kl_store *s, kl_arena *a,
                              const char *kind, const char *name, int64_t limit, kl_error *e) {
    KL_ASSERT(limit > 0);
    const kli_query q = {
        .table = &kli_records,
        .match = {{"kind", .text = kl_str_of(kind)}, {"name", .text = kl_str_of(name)}},
        .order = KLI_NEWEST_FIRST,
        .limit = limit};
    return kli_list(rows, n, s, a, &q, e);
}

kl_err kl_store_record_list(kl_store_record **rows, size_t *n, kl_store *s, kl_arena *a,
                            const char *kind, kl_error *e) {
    const kli_query q = {.table = &kli_records,
                         .match = {{"kind", .text = kl_str_of(kind)}},
                         .order = KLI_NEWEST_FIRST};
    return kli_list(rows, n, s, a, &q, e);
}
