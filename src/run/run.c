/* run.c - a run is what identifies it: the same command finds what it did before.
 *
 * Money is not part of the identity: a run that stopped at its cap goes on when it is asked again
 * with a larger one. Not here: tracks (track.c, tracks.c), effects (ask.c, judge.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/run_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *run_copied(kl_arena *a, const char *text) {
    return text ? kl_arena_copy(a, kl_str_of(text)).ptr : NULL;
}

/* The caller's texts may go; kernels and functions that the gate's options name stay borrowed. */
static void copy_options(kl_run *r, const kl_run_opts *o) {
    kl_str *identity = KL_ARRAY(r->arena, kl_str, o->n_identity + 1);
    for (int i = 0; i < o->n_identity; i++) identity[i] = kl_arena_copy(r->arena, o->identity[i]);
    r->opts = *o;
    r->opts.identity = identity;
    r->opts.command = run_copied(r->arena, o->command);
    r->opts.model = run_copied(r->arena, o->model      ? o->model
                                         : o->provider ? o->provider->name
                                                       : NULL);
    r->opts.priced_as = run_copied(r->arena, o->priced_as);
    r->opts.executor = run_copied(r->arena, o->executor);
    r->opts.gate.workload = run_copied(r->arena, o->gate.workload);
    r->opts.gate.baseline = run_copied(r->arena, o->gate.baseline);
    r->opts.gate.arch = run_copied(r->arena, o->gate.arch);
    r->path =
        o->store ? kl_arena_copy(r->arena, kl_str_of(o->store)) : kl_store_default_path(r->arena);
    r->opts.store = r->path.ptr;
}

static void run_identify(kl_run *r) {
    kl_hasher h;
    kli_hasher_init(&h);
    kli_hasher_add(&h, KL_S("klineage/run/1"));
    kli_hasher_add(&h, kl_str_of(r->opts.command));
    kli_hasher_add(&h, kl_str_of(r->opts.model));
    kli_hasher_add(&h, kl_arena_printf(r->arena, "%llu", (unsigned long long)r->opts.trial));
    for (int i = 0; i < r->opts.n_identity; i++) kli_hasher_add(&h, r->opts.identity[i]);
    memcpy(r->id, kli_hasher_end(&h).hex, sizeof r->id);
}

static kl_err run_write_down(kl_run *r, kl_error *e) {
    json_t *identity = json_array();
    char trial[24];
    snprintf(trial, sizeof trial, "%llu",
             (unsigned long long)r->opts.trial); /* text: JSON numbers end at 2^53 */
    for (int i = 0; i < r->opts.n_identity; i++)
        json_array_append_new(identity, kli_json_str(r->opts.identity[i]));
    json_t *o =
        json_pack("{ss si so so ss so}", "schema", "klineage/run", "version", 1, "command",
                  kli_json_str(kl_str_of(r->opts.command)), "model",
                  kli_json_str(kl_str_of(r->opts.model)), "trial", trial, "identity", identity);
    kl_store_run row = {.id = kl_str_of(r->id),
                        .command = kl_str_of(r->opts.command),
                        .json = kli_json_dump(r->arena, o, false)};
    json_decref(o);
    return kl_store_run_put(r->store, &row, e);
}

/* A model, key, recording or price that is missing is said before anything is compiled.  A run that
 * was begun is let through: what it asked for may all be in the journal. */
static kl_err run_check_model(kl_run *r, kl_error *e) {
    kl_store_run known;
    r->resumed = kl_store_run_find(&known, r->store, r->arena, r->id, kl_ignored()) == KL_OK;
    if (r->resumed || !r->opts.model || r->opts.provider) return KL_OK;
    return kl_model_check(r->opts.model, r->opts.priced_as, r->opts.budget_microusd, e);
}

kl_err kl_run_open(kl_run **out, const kl_run_opts *o, kl_error *e) {
    kl_run *r = calloc(1, sizeof *r);
    if (!r) kl_oom(sizeof *r);
    KL_ASSERT(o->command && o->n_identity >= 0);
    *out = NULL;
    r->arena = kl_arena_new();
    r->start_ns = kli_now_ns();
    copy_options(r, o);
    run_identify(r);
    kl_err err = kl_store_open(&r->store, r->path.ptr, e);
    if (!err) err = run_check_model(r, e);
    if (!err) err = run_write_down(r, e);
    if (!err) err = kl_noise_recall(&r->noise, r->store, r->arena, e);
    if (err)
        kl_run_close(r);
    else
        *out = r;
    return err;
}

void kl_run_close(kl_run *r) {
    if (!r) return;
    kl_store_close(r->store);
    for (size_t i = 0; i < r->n_kept; i++) kl_arena_free(r->kept[i]);
    kl_arena_free(r->arena);
    free(r);
}

const char *kl_run_id(const kl_run *r) { return r->id; }

bool kl_run_resumed(const kl_run *r) { return r->resumed; }

kl_store *kl_run_store(kl_run *r) { return r->store; }

kl_err kl_run_keep_noise(kl_run *r, const kl_noise *n, kl_error *e) {
    const kl_err err = kl_noise_keep(r->store, r->arena, n, e);
    return err ? err : kl_noise_recall(&r->noise, r->store, r->arena, e);
}

const kl_noise_record *kl_run_noise(const kl_run *r) { return &r->noise; }
