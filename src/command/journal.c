/* journal.c - see journal.h.  SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "base/fs.h"
#include "base/json.h"
#include <string.h>

kl_err kli_journal_open(kl_store **out, kl_arena *a, const kli_args *args, kl_error *e) {
    const char *named = args->values[KL_OPTION_STORE];
    return kl_store_open(out, named ? named : kl_store_default_path(a).ptr, e);
}

static void suggest_lineage(kl_arena *a, kl_store *s, const char *what, kl_error *e) {
    kl_store_record *rows;
    size_t n;
    kli_suggestion near;
    if (strchr(what, '/') || kl_store_record_list(&rows, &n, s, a, "lineage", kl_ignored())) return;
    kli_suggest_start(&near, kl_str_of(what));
    for (size_t i = 0; i < n; i++) kli_suggest_offer(&near, rows[i].name);
    if (near.best.ptr)
        kl_hint(e, "did you mean %.*s? klineage lineage list shows all", KL_STR_ARG(near.best));
}

kl_err kli_journal_lineage(kl_lineage *out, kl_arena *a, kl_store *s, const char *what,
                           kl_error *e) {
    const kl_err err = kl_lineage_load(out, a, s, what, e);
    if (err == KL_ENOENT) suggest_lineage(a, s, what, e);
    return err;
}

kl_err kli_journal_write_lineage(const kl_lineage *l, kl_arena *a, const char *path, kl_error *e) {
    if (!path) return KL_OK;
    json_t *o = kl_lineage_json(l);
    const kl_err err = kli_fs_write(path, kli_json_dump(a, o, true), e);
    json_decref(o);
    return err;
}
