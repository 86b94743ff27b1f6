/* verdicts.c - see verdicts.h.  What is kept is the verdict's JSON, exactly as `klineage gate
 * --json` prints it. SPDX-License-Identifier: Apache-2.0 */
#include "run/verdicts.h"
#include "base/hash.h"
#include "base/json.h"
#include <string.h>

#define VERDICTS_MAX_REPEATS 10000 /* answers to one question; each costs a look-up */

static kl_err parse_kept(kl_verdict *out, kl_arena *a, kl_str json, kl_error *e) {
    kl_err err = kl_verdict_parse(out, a, json, KL_S("journal"), e);
    out->journaled = true;
    return err;
}

kl_err kli_verdicts_get(kl_verdict *out, kl_store *s, kl_arena *a, const char *key, kl_error *e) {
    kl_str json;
    kl_err err = kl_store_verdict_get(&json, s, a, key, e);
    return err ? err : parse_kept(out, a, json, e);
}

/* Under which key the answer to the same question is kept when it is given again. */
static void next_key(char key[65]) {
    const kl_str parts[] = {KL_S("klineage/verdict/again"), kl_str_of(key)};
    memcpy(key, kli_hash_parts(parts, KL_COUNT(parts)).hex, 65);
}

kl_err kli_verdicts_find(kl_verdict *out, bool *found, kl_store *s, kl_arena *a, char key[65],
                         kl_error *e) {
    kl_str json = {0}, newest = {0};
    kl_error local = {0};
    kl_err err = KL_OK;
    char at[65];
    memcpy(at, key, sizeof at);
    for (int n = 0;
         n < VERDICTS_MAX_REPEATS && (err = kl_store_verdict_get(&json, s, a, at, &local)) == KL_OK;
         n++) {
        newest = json;
        memcpy(key, at, sizeof at);
        next_key(at);
    }
    *found = newest.ptr != NULL;
    if (err && err != KL_ENOENT) return *e = local, err;
    return *found ? parse_kept(out, a, newest, e) : KL_OK;
}

/* What is kept under the key, if anything. */
static kl_str kept_text(kl_store *s, kl_arena *a, const char *key) {
    kl_str json = {0};
    return kl_store_verdict_get(&json, s, a, key, kl_ignored()) == KL_OK ? json : (kl_str){0};
}

kl_err kli_verdicts_keep(char key[65], kl_store *s, kl_arena *a, const kl_verdict *v, kl_error *e) {
    json_t *o = kl_verdict_json(v);
    kl_str json = kli_json_dump(a, o, false);
    json_decref(o);
    kl_store_verdict row = {.task = v->task,
                            .kernel = v->kernel_hash,
                            .platform = v->platform,
                            .outcome = kl_str_of(kl_outcome_name(v->outcome)),
                            .json = json};
    for (int n = 0; n < VERDICTS_MAX_REPEATS; n++, next_key(key)) {
        if (kept_text(s, a, key).ptr) continue;
        row.key = kl_str_of(key);
        kl_err err = kl_store_verdict_put(s, &row, e);
        /* The first writer wins: another process may have been faster with this key. */
        if (err || kl_str_eq(kept_text(s, a, key), json)) return err;
    }
    return kl_fail(e, KL_ELIMIT, "journal", "the same question was answered %d times already",
                   VERDICTS_MAX_REPEATS);
}

static bool lacked_baseline(const kl_verdict *v) {
    return v->n_comparisons == 1 &&
           kl_str_eq(v->comparisons[0].baseline, KL_S("candidate")); /* timed against itself */
}

bool kli_verdicts_answer(const kl_verdict *v, const kl_task *t, const kl_gate_opts *o) {
    bool wants_baseline =
        t->n_baselines && !o->against && !(o->baseline && strcmp(o->baseline, "none") == 0);
    if (v->outcome == KL_OUTCOME_UNSTABLE) return false;
    if (wants_baseline && lacked_baseline(v)) return false;
    return !o->require_assurance || v->assurance <= o->require_assurance;
}
