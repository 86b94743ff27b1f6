/* effect.c - the tables of runs and effects; nothing else writes them.
 *
 * A row is put once and never changes: an answer that was used stays the answer (law 8).
 * Not here: what a request and an answer say (run/ask.c, run/judge.c), what they cost (charge.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include <klineage/limits.h>

/* ---- runs ------------------------------------------------------------------------------------------------------- */

kl_err kl_store_run_put(kl_store *s, const kl_store_run *r, kl_error *e) {
    sqlite3_stmt *put;
    kl_err err = kli_store_statement(&put, s, KLI_RUN_PUT, e);
    if (err) return err;
    kli_store_bind(put, 1, r->id);
    kli_store_bind(put, 2, r->command);
    kli_store_bind(put, 3, r->json);
    return kli_store_do(s, put, "keep a run", e);
}

static kl_store_run run_of(kl_arena *a, sqlite3_stmt *row) {
    return (kl_store_run){.id = kli_store_copy(a, row, 0),
                          .command = kli_store_copy(a, row, 1),
                          .json = kli_store_copy(a, row, 2),
                          .created = kli_store_copy(a, row, 3)};
}

kl_err kl_store_run_list(kl_store_run **rows, size_t *n, kl_store *s, kl_arena *a, kl_error *e) {
    sqlite3_stmt *list;
    size_t cap = 0;
    int step = SQLITE_DONE;
    *rows = NULL;
    *n = 0;
    kl_err err = kli_store_statement(&list, s, KLI_RUN_LIST, e);
    if (err) return err;
    while ((step = sqlite3_step(list)) == SQLITE_ROW) {
        *rows = kli_store_grow(a, *rows, *n, &cap, sizeof **rows);
        (*rows)[(*n)++] = run_of(a, list);
    }
    if (step != SQLITE_DONE) err = kli_store_fail(s, "list runs", e);
    kli_store_release(list);
    return err;
}

kl_err kl_store_run_find(kl_store_run *out, kl_store *s, kl_arena *a, const char *prefix, kl_error *e) {
    sqlite3_stmt *find;
    kl_err err = kli_store_prefix(s, prefix, "klineage run list", e);
    if (!err) err = kli_store_statement(&find, s, KLI_RUN_FIND, e);
    if (err) return err;
    kli_store_bind(find, 1, kl_str_of(prefix));
    int step = sqlite3_step(find);
    if (step == SQLITE_ROW) {
        *out = run_of(a, find);
        step = sqlite3_step(find);
        if (step == SQLITE_ROW) err = kl_fail(e, KL_EINVAL, s->path, "several runs begin with %s", prefix);
    } else if (step == SQLITE_DONE) {
        err = kl_fail(e, KL_ENOENT, s->path, "no run begins with %s", prefix);
        kl_hint(e, "klineage run list prints the runs of this store");
    }
    if (step != SQLITE_ROW && step != SQLITE_DONE) err = kli_store_fail(s, "look for a run", e);
    kli_store_release(find);
    return err;
}

/* ---- effects ---------------------------------------------------------------------------------------------------- */

static kl_store_effect effect_of(kl_arena *a, sqlite3_stmt *row) {
    return (kl_store_effect){.key = kli_store_copy(a, row, 0),
                             .run = kli_store_copy(a, row, 1),
                             .track = kli_store_copy(a, row, 2),
                             .kind = kli_store_copy(a, row, 3),
                             .purpose = kli_store_copy(a, row, 4),
                             .ordinal = sqlite3_column_int64(row, 5),
                             .request = kli_store_copy(a, row, 6),
                             .answer = kli_store_copy(a, row, 7),
                             .created = kli_store_copy(a, row, 8)};
}

kl_err kl_store_effect_get(kl_store_effect *out, kl_store *s, kl_arena *a, const char *key, kl_error *e) {
    sqlite3_stmt *get;
    kl_err err = kli_store_statement(&get, s, KLI_EFFECT_GET, e);
    if (err) return err;
    kli_store_bind(get, 1, kl_str_of(key));
    switch (sqlite3_step(get)) {
    case SQLITE_ROW:
        *out = effect_of(a, get);
        break;
    case SQLITE_DONE:
        err = kl_fail(e, KL_ENOENT, s->path, "no effect with the key %s", key);
        break;
    default:
        err = kli_store_fail(s, "read an effect", e);
    }
    kli_store_release(get);
    return err;
}

kl_err kl_store_effect_put(kl_store *s, const kl_store_effect *f, kl_error *e) {
    if (f->request.len > KL_MAX_JSON_BYTES || f->answer.len > KL_MAX_JSON_BYTES)
        return kl_fail(e, KL_ELIMIT, s->path, "an effect of %zu bytes; the limit is %u", f->request.len + f->answer.len,
                       KL_MAX_JSON_BYTES);
    sqlite3_stmt *put;
    kl_err err = kli_store_statement(&put, s, KLI_EFFECT_PUT, e);
    if (err) return err;
    const kl_str columns[] = {f->key, f->run, f->track, f->kind, f->purpose, f->request, f->answer};
    for (size_t i = 0; i < KL_COUNT(columns); i++) kli_store_bind(put, (int)i + 1, columns[i]);
    sqlite3_bind_int64(put, 8, f->ordinal);
    return kli_store_do(s, put, "keep an effect", e);
}

kl_err kl_store_effect_list(kl_store_effect **rows, size_t *n, kl_store *s, kl_arena *a, const char *run,
                            const char *track, kl_error *e) {
    sqlite3_stmt *list;
    size_t cap = 0;
    int step = SQLITE_DONE;
    *rows = NULL;
    *n = 0;
    kl_err err = kli_store_statement(&list, s, KLI_EFFECT_LIST, e);
    if (err) return err;
    kli_store_bind(list, 1, kl_str_of(run));
    if (track) kli_store_bind(list, 2, kl_str_of(track));
    while ((step = sqlite3_step(list)) == SQLITE_ROW) {
        *rows = kli_store_grow(a, *rows, *n, &cap, sizeof **rows);
        (*rows)[(*n)++] = effect_of(a, list);
    }
    if (step != SQLITE_DONE) err = kli_store_fail(s, "list effects", e);
    kli_store_release(list);
    return err;
}
