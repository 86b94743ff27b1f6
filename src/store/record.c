/* record.c - the table of documents that other modules own: lineages, trials; nothing else writes it.
 *
 * A known (kind, id) gets the new text and keeps its place and its date.  Not here: what a document says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"
#include <klineage/limits.h>
#include <string.h>

kl_err kl_store_record_put(kl_store *s, const kl_store_record *r, kl_error *e) {
    if (r->json.len > KL_MAX_JSON_BYTES)
        return kl_fail(e, KL_ELIMIT, s->path, "a %.*s of %zu bytes; the limit is %u", KL_STR_ARG(r->kind), r->json.len,
                       KL_MAX_JSON_BYTES);
    sqlite3_stmt *put;
    kl_err err = kli_store_statement(&put, s, KLI_RECORD_PUT, e);
    if (err) return err;
    const kl_str columns[] = {r->kind, r->id, r->name, r->task, r->json};
    for (size_t i = 0; i < KL_COUNT(columns); i++) kli_store_bind(put, (int)i + 1, columns[i]);
    return kli_store_do(s, put, "keep a record", e);
}

static kl_store_record record_of(kl_arena *a, sqlite3_stmt *row) {
    return (kl_store_record){.kind = kli_store_copy(a, row, 0),
                             .id = kli_store_copy(a, row, 1),
                             .name = kli_store_copy(a, row, 2),
                             .task = kli_store_copy(a, row, 3),
                             .json = kli_store_copy(a, row, 4),
                             .created = kli_store_copy(a, row, 5)};
}

/* Up to two rows: the second only says that there are several. */
static kl_err look_up(kl_store_record *out, int *found, kl_store *s, kl_arena *a, kli_statement how, kl_str kind,
                      kl_str what, kl_error *e) {
    sqlite3_stmt *find;
    *found = 0;
    kl_err err = kli_store_statement(&find, s, how, e);
    if (err) return err;
    kli_store_bind(find, 1, kind);
    kli_store_bind(find, 2, what);
    int step;
    while ((step = sqlite3_step(find)) == SQLITE_ROW)
        if ((*found)++ == 0) *out = record_of(a, find);
    if (step != SQLITE_DONE) err = kli_store_fail(s, "look for a record", e);
    kli_store_release(find);
    return err;
}

static bool may_be_id(const char *text) {
    size_t len = strlen(text);
    return len >= 4 && len <= 64 && strspn(text, "0123456789abcdef") == len;
}

kl_err kl_store_record_find(kl_store_record *out, kl_store *s, kl_arena *a, const char *kind, const char *id_or_name,
                            kl_error *e) {
    int found;
    kl_str what = kl_str_of(id_or_name);
    kl_err err = look_up(out, &found, s, a, KLI_RECORD_BY_NAME, kl_str_of(kind), what, e);
    if (!err && !found && may_be_id(id_or_name))
        err = look_up(out, &found, s, a, KLI_RECORD_BY_ID, kl_str_of(kind), what, e);
    if (err || found == 1) return err;
    if (found) return kl_fail(e, KL_EINVAL, s->path, "several ids of a %s begin with %s", kind, id_or_name);
    return kl_fail(e, KL_ENOENT, s->path, "no %s has the name or id '%s'", kind, id_or_name);
}

kl_err kl_store_record_list(kl_store_record **rows, size_t *n, kl_store *s, kl_arena *a, const char *kind,
                            kl_error *e) {
    sqlite3_stmt *list;
    size_t cap = 0;
    int step = SQLITE_DONE;
    *rows = NULL;
    *n = 0;
    kl_err err = kli_store_statement(&list, s, KLI_RECORD_LIST, e);
    if (err) return err;
    kli_store_bind(list, 1, kl_str_of(kind));
    while ((step = sqlite3_step(list)) == SQLITE_ROW) {
        *rows = kli_store_grow(a, *rows, *n, &cap, sizeof **rows);
        (*rows)[(*n)++] = record_of(a, list);
    }
    if (step != SQLITE_DONE) err = kli_store_fail(s, "list records", e);
    kli_store_release(list);
    return err;
}
