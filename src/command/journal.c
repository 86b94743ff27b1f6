/* journal.c - see journal.h.  What is kept is the verdict's JSON, exactly as `klineage gate --json` prints it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "command/journal.h"
#include "base/hash.h"
#include "base/json.h"
#include <string.h>

kl_err kl_journal_open(kl_store **out, kl_arena *a, const kl_args *args, kl_error *e) {
    const char *named = args->values[KL_OPTION_STORE];
    return kl_store_open(out, named ? named : kl_store_default_path(a).ptr, e);
}

kl_err kl_journal_find(kl_verdict *out, bool *found, kl_store *s, kl_arena *a, const char *key, kl_error *e) {
    kl_str json;
    kl_error local = {0};
    kl_err err = kl_store_verdict_get(&json, s, a, key, &local);
    *found = err == KL_OK;
    if (err == KL_ENOENT) return KL_OK;
    if (err) return *e = local, err;
    err = kl_verdict_parse(out, a, json, KL_S("journal"), e);
    out->journaled = true;
    return err;
}

static bool is_taken(kl_store *s, kl_arena *a, const char *key) {
    kl_str ignored;
    kl_error unused = {0};
    return kl_store_verdict_get(&ignored, s, a, key, &unused) == KL_OK;
}

kl_err kl_journal_keep(char key[65], kl_store *s, kl_arena *a, const kl_verdict *v, kl_error *e) {
    json_t *o = kl_verdict_json(v);
    kl_str json = kl_json_dump(a, o, false);
    json_decref(o);
    if (is_taken(s, a, key)) {
        kl_hasher h;
        kl_hasher_init(&h);
        kl_hasher_add(&h, kl_str_of(key));
        kl_hasher_add(&h, json);
        memcpy(key, kl_hasher_end(&h).hex, 65);
    }
    kl_store_verdict row = {.key = kl_str_of(key),
                            .task = v->task,
                            .kernel = v->kernel_hash,
                            .platform = v->platform,
                            .outcome = kl_str_of(kl_outcome_name(v->outcome)),
                            .json = json};
    return kl_store_verdict_put(s, &row, e);
}
