/* step.c - the table of gated attempts; nothing else writes it.
 *
 * A line that is run again writes the same rows, so the key is where a step stands in its track and the last writer wins.
 * Not here: what a step says (run/track.c).  SPDX-License-Identifier: Apache-2.0 */
#include "store/store_impl.h"

kl_err kl_store_step_put(kl_store *s, const kl_store_step *row, kl_error *e) {
    sqlite3_stmt *put;
    kl_err err = kli_store_statement(&put, s, KLI_STEP_PUT, e);
    if (err) return err;
    kli_store_bind(put, 1, row->run);
    kli_store_bind(put, 2, row->track);
    sqlite3_bind_int64(put, 3, row->n);
    kli_store_bind(put, 4, row->json);
    return kli_store_do(s, put, "keep a step", e);
}

kl_err kl_store_step_cut(kl_store *s, const char *run, const char *track, int64_t n, kl_error *e) {
    sqlite3_stmt *cut;
    kl_err err = kli_store_statement(&cut, s, KLI_STEP_CUT, e);
    if (err) return err;
    kli_store_bind(cut, 1, kl_str_of(run));
    kli_store_bind(cut, 2, kl_str_of(track));
    sqlite3_bind_int64(cut, 3, n);
    return kli_store_do(s, cut, "drop steps that were not taken again", e);
}

kl_err kl_store_step_list(kl_store_step **rows, size_t *n, kl_store *s, kl_arena *a, const char *run, kl_error *e) {
    sqlite3_stmt *list;
    size_t cap = 0;
    int step = SQLITE_DONE;
    *rows = NULL;
    *n = 0;
    kl_err err = kli_store_statement(&list, s, KLI_STEP_LIST, e);
    if (err) return err;
    kli_store_bind(list, 1, kl_str_of(run));
    while ((step = sqlite3_step(list)) == SQLITE_ROW) {
        *rows = kli_store_grow(a, *rows, *n, &cap, sizeof **rows);
        (*rows)[(*n)++] = (kl_store_step){.run = kli_store_copy(a, list, 0),
                                          .track = kli_store_copy(a, list, 1),
                                          .n = sqlite3_column_int64(list, 2),
                                          .json = kli_store_copy(a, list, 3)};
    }
    if (step != SQLITE_DONE) err = kli_store_fail(s, "list steps", e);
    kli_store_release(list);
    return err;
}
