/* effects.h - what a line may cause, as operations: a policy does not know who carries them out.
 *
 *   journaled    kl_run_tracks: looked up, else asked or judged, written down, and only then used
 * (ask.c, judge.c, step.c) fake         tests: told beforehand (fake_track.h)
 *
 * The functions of run.h are these, by way of the track's own row (effects.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_RUN_EFFECTS_H
#define KL_RUN_EFFECTS_H
#include <klineage/run.h>

#include "kernel/kernel.h"

typedef struct {
    const char *name;
    /* As kl_ask; adds to spent_microusd what the call cost. */
    kl_err (*ask)(kl_reply *out, kl_track *t, kl_arena *a, const kl_request *q, kl_error *e);
    /* As kl_judge; sets verdict_key. */
    kl_err (*judge)(kl_verdict *out, kl_track *t, kl_arena *a, const kl_gate_job *j, kl_error *e);
    /* The verdict of a text that is no kernel, as `why` says; sets verdict_key. */
    kl_err (*refuse)(kl_verdict *out, kl_track *t, kl_arena *a, const kl_task *task, kl_str source,
                     kl_str path, const kl_error *why, kl_error *e);
    void (*prefetch)(kl_track *t, const kl_gate_job *j);
    kl_err (*step)(kl_track *t, const kl_step *s, kl_str kernel_source, kl_error *e);
    /* The same for the same name, whatever was done before; never 0. */
    uint64_t (*seed)(const kl_track *t, const char *name);
    void (*say)(kl_track *t, const char *text); /* one printable line */
    const char *(*model)(const kl_track *t);
    const char *(*recorded_next)(kl_track *t, const char *slot);
} kli_run_effects;

/* What every row keeps of a track.  A row's own state begins with it. */
struct kl_track {
    const kli_run_effects *effects;
    kl_arena *arena;          /* of this pass through the line */
    const kl_gate_opts *gate; /* base options of every gate run */
    const char *phase;
    int64_t spent_microusd, budget_microusd;
    double best;
    char verdict_key[65];
};

#endif
