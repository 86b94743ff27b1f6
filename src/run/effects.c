/* effects.c - the functions of run.h that a line calls: each by way of its track's row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/effects.h"
#include <stdio.h>

kl_err kl_ask(kl_reply *out, kl_track *t, kl_arena *a, const kl_request *q, kl_error *e) {
    KL_ASSERT(q->n > 0);
    return t->effects->ask(out, t, a, q, e);
}

static kl_gate_job effects_job_of(const kl_track *t, const kl_task *task, const kl_kernel *k,
                                  const kl_gate_opts *o) {
    return (kl_gate_job){task, k, o ? *o : *t->gate};
}

kl_err kl_judge(kl_verdict *out, kl_track *t, kl_arena *a, const kl_task *task, const kl_kernel *k,
                const kl_gate_opts *o, kl_error *e) {
    KL_ASSERT(task && k);
    const kl_gate_job j = effects_job_of(t, task, k, o);
    return t->effects->judge(out, t, a, &j, e);
}

void kl_prefetch(kl_track *t, const kl_task *task, const kl_kernel *k, const kl_gate_opts *o) {
    const kl_gate_job j = effects_job_of(t, task, k, o);
    t->effects->prefetch(t, &j);
}

kl_err kl_judge_text(kl_verdict *out, kl_kernel **k, kl_track *t, kl_arena *a, const kl_task *task,
                     kl_str source, const kl_surface *s, const kl_gate_opts *o, kl_error *e) {
    kl_error why = {0};
    kl_str path = kl_arena_printf(a, "candidate%s", s->suffix);
    kl_kernel *parsed = NULL;
    kl_err err = kl_kernel_parse(&parsed, a, source, path, s, NULL, &why);
    *k = err ? NULL : parsed;
    if (!err) return kl_judge(out, t, a, task, parsed, o, e);
    if (err == KL_EPARSE || err == KL_ELIMIT || err == KL_EINVAL)
        return t->effects->refuse(out, t, a, task, source, path, &why, e);
    *e = why;
    return err;
}

kl_err kl_track_step(kl_track *t, const kl_step *s, kl_str kernel_source, kl_error *e) {
    return t->effects->step(t, s, kernel_source, e);
}

uint64_t kl_track_seed(const kl_track *t, const char *name) { return t->effects->seed(t, name); }

const char *kl_track_model(const kl_track *t) { return t->effects->model(t); }

const char *kl_track_recorded_next(kl_track *t, const char *slot) {
    return t->effects->recorded_next(t, slot);
}

void kl_track_log(kl_track *t, const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' '; /* it may quote a model: no control character reaches a terminal */
    t->effects->say(t, text);
}

/* ---- what every track keeps -------------------------------------------------------------- */

kl_arena *kl_track_arena(kl_track *t) { return t->arena; }
const kl_gate_opts *kl_track_gate_opts(const kl_track *t) { return t->gate; }
const char *kl_track_verdict_key(const kl_track *t) { return t->verdict_key; }
int64_t kl_track_spent(const kl_track *t) { return t->spent_microusd; }
int64_t kl_track_budget(const kl_track *t) { return t->budget_microusd; }
void kl_track_best(kl_track *t, double ratio) { t->best = ratio; }

void kl_track_phase(kl_track *t, const char *phase) {
    t->phase = phase ? kl_arena_copy(t->arena, kl_str_of(phase)).ptr : "";
}
