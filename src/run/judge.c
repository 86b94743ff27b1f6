/* judge.c - a question to the gate: looked up, else judged by the run's executor, kept, and only
 * then used.
 *
 *   effect of this run -> verdict                           a resumed line sees the verdict of the
 * first time, whatever was measured since
 *    '-> verdict of the same question, by anybody           free; this run's effect then names it;
 * not where jobs keep their own
 *         '-> executor (again if it was unstable)           kept, named, used; a quick look with a
 * cap of its own is taken once
 *
 * A verdict that stays unstable is named only when the line goes on from it: until then nothing
 * rests on it, and a run that gave up because the machine was busy measures anew when it is
 * resumed.  Where a job keeps its verdict, that is another job.
 *
 * The verdict is read back from the store, also the first time.  Not here: who judges and where
 * (executor/), what a verdict says (gate/), which one is newest (verdicts.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/run_impl.h"
#include "run/verdicts.h"
#include "base/hash.h"
#include "base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JUDGE_MAX_REPEATS 64 /* of a question whose answer never settles */

typedef struct {
    kli_track *t;
    kl_gate_job job;
    kli_pending_check d; /* how the answer is written down */
    bool fresh;          /* measured now */
    bool unsettled;      /* unstable, twice */
} judgement;

/* ---- what is asked ----------------------------------------------------------------------- */

static kl_err open_executor(kli_track *t, kl_error *e) {
    const kl_run_opts *o = &t->run->opts;
    const char *colon = o->executor ? strchr(o->executor, ':') : NULL;
    if (t->executor) return KL_OK;
    if (!o->executor_ops) return kl_executor_open(&t->executor, o->executor, e);
    return kl_executor_open_ops(&t->executor, o->executor_ops, colon ? colon + 1 : "", e);
}

static bool keeps(const judgement *j) { return kl_executor_ops_of(j->t->executor)->keeps; }

/* The question and what else is demanded of an answer. */
static kl_str judge_content_of(const judgement *j) {
    const char required[2] = {j->job.opts.require_assurance, 0};
    return kl_arena_printf(j->t->base.arena, "%s %s", j->d.question, required);
}

static kl_err ask_what(judgement *j, kl_error *e) {
    kli_track *t = j->t;
    kl_err err = open_executor(t, e);
    if (!err) err = kl_executor_key(j->d.question, t->executor, t->base.arena, &j->job, e);
    if (!err) kli_effect_key(j->d.key, t, "judge", judge_content_of(j));
    return err;
}

/* ---- the answer -------------------------------------------------------------------------- */

static kl_err read_verdict(kl_verdict *out, judgement *j, kl_arena *a, const char *key,
                           kl_error *e) {
    kli_track *t = j->t;
    kl_err err = kli_verdicts_get(out, t->run->store, a, key, e);
    if (err == KL_ENOENT)
        err = kl_fail(e, KL_EIO, "journal", "effect %.12s was judged, but its verdict is gone",
                      j->d.key);
    if (err) return err;
    kli_count_up(t, judge_content_of(j));
    memcpy(t->base.verdict_key, key, sizeof t->base.verdict_key);
    return KL_OK;
}

/* Errors: KL_ENOENT when this run has none yet. */
static kl_err judge_from_journal(kl_verdict *out, judgement *j, kl_arena *a, kl_error *e) {
    kl_store_effect f;
    kli_track *t = j->t;
    kl_err err = kl_store_effect_get(&f, t->run->store, t->base.arena, j->d.key, e);
    if (err) return err;
    return read_verdict(out, j, a, f.answer.ptr, e);
}

static kl_err judge_write_down(kli_track *t, const kli_pending_check *d, kl_error *e) {
    kl_store_effect f = {.key = kl_str_of(d->key),
                         .run = kl_str_of(t->run->id),
                         .track = kl_str_of(t->spec->name),
                         .kind = KL_S("judge"),
                         .purpose = d->purpose,
                         .ordinal = d->ordinal,
                         .request = kl_str_of(d->question),
                         .answer = kl_str_of(d->verdict)};
    return kl_store_effect_put(t->run->store, &f, e);
}

kl_err kli_pending_check_write(kli_track *t, kl_error *e) {
    if (!t->pending_check.there) return KL_OK;
    kl_err err = judge_write_down(t, &t->pending_check, e);
    if (!err) t->pending_check.there = false;
    return err;
}

static kl_err judge_answer(kl_verdict *out, judgement *j, kl_arena *a, kl_error *e) {
    kli_track *t = j->t;
    kli_pending_check *d = &j->d;
    const char *workload = j->job.opts.workload;
    d->purpose = kl_str_of(workload ? workload : t->spec->workload);
    d->ordinal = kli_count_of(t, KL_S("judged"));
    if (!j->unsettled) {
        const kl_err err = judge_write_down(t, d, e);
        return err ? err
                   : judge_from_journal(out, j, a, e); /* another process may have been first */
    }
    d->purpose = kl_arena_copy(t->base.arena, d->purpose);
    d->there = true;
    KL_ASSERT(
        !t->pending_check.there); /* law 8: the one before was written when the line went on */
    t->pending_check = *d;
    return read_verdict(out, j, a, d->verdict, e);
}

/* ---- what is submitted ahead ------------------------------------------------------------- */

static void note_ahead(kli_track *t, const char *id) {
    for (size_t i = 0; i < t->n_ahead; i++)
        if (strcmp(t->ahead[i].id, id) == 0) return;
    memcpy(KL_PUSH(t->keep, t->ahead, t->n_ahead)->id, id, sizeof t->ahead->id);
}

static void note_asked(kli_track *t, const char *id) {
    for (size_t i = 0; i < t->n_ahead; i++)
        if (strcmp(t->ahead[i].id, id) == 0) t->ahead[i].id[0] = '\0';
}

/* One visit to another host answers this question and the one that is prefetched.  What fails here
 * fails again when its turn comes. */
static void submit_foreseen(kli_track *t) {
    kl_error e = {0};
    char id[65];
    if (!t->prefetched.kernel || kl_executor_capacity(t->executor) < 2) return;
    if (kl_executor_submit(id, t->executor, t->base.arena, &t->prefetched, &e))
        kli_debug("not submitted ahead: %s", e.message);
    else
        note_ahead(t, id);
}

/* Whoever wants the same job submits it again before asking for it, so none of theirs is lost. */
void kli_ahead_cancel(kli_track *t) {
    for (size_t i = 0; i < t->n_ahead; i++) {
        kl_error e = {0};
        if (t->ahead[i].id[0] && kl_executor_cancel(t->executor, t->base.arena, t->ahead[i].id, &e))
            kli_debug("not cancelled: %s", e.message);
    }
    t->n_ahead = 0;
}

/* ---- judging ----------------------------------------------------------------------------- */

/* The verdict of one job, kept once however often the executor gives it. */
static kl_err judge_take(kl_verdict *v, judgement *j, const kl_gate_job *job, kl_error *e) {
    kli_track *t = j->t;
    kl_verdict kept = {0};
    bool found = false;
    kl_err err = kl_executor_submit(j->d.verdict, t->executor, t->base.arena, job, e);
    if (err) return err;
    note_asked(t, j->d.verdict);
    err = kl_executor_poll(v, t->executor, t->base.arena, j->d.verdict, e);
    if (err == KL_PENDING) memcpy(t->awaited, j->d.verdict, sizeof t->awaited);
    if (err == KL_PENDING) submit_foreseen(t);
    if (!err) err = kli_verdicts_find(&kept, &found, t->run->store, t->base.arena, j->d.verdict, e);
    j->fresh = !err && !(found && strcmp(kept.receipt, v->receipt) == 0);
    if (err || !j->fresh) return err;
    v->journaled = false;
    return kli_verdicts_keep(j->d.verdict, t->run->store, t->base.arena, v, e);
}

/* The same question as the n-th job: the root of its random numbers tells it apart from the one
 * before. */
static uint64_t seed_of_repeat(const judgement *j, int n) {
    const kl_str parts[] = {KL_S("klineage/run/repeat/1"), kl_str_of(j->d.question),
                            kl_arena_printf(j->t->base.arena, "%d", n)};
    return kli_hash_seed(parts, KL_COUNT(parts));
}

/* A busy minute is no property of a kernel; who asked for a short look has had it.  Where a job
 * keeps its verdict, the workers measured twice: one that comes in now is this line's answer, and
 * one that was there before is what somebody gave up on. */
static bool worth_another(const judgement *j, const kl_verdict *v, int times) {
    const kl_gate_opts *o = &j->job.opts;
    if (v->outcome != KL_OUTCOME_UNSTABLE) return false;
    if (keeps(j)) return !j->fresh && !o->seed && times <= JUDGE_MAX_REPEATS;
    return times == 1 && !(o->quick && o->max_seconds > 0);
}

static kl_err judge_measure(judgement *j, kl_error *e) {
    kl_gate_job job = j->job;
    kl_verdict v = {0};
    KL_ASSERT(strlen(j->d.question) == 64 && strlen(j->d.key) == 64);
    kl_err err = judge_take(&v, j, &job, e);
    for (int n = 1; !err && worth_another(j, &v, n); n++) {
        if (keeps(j)) job.opts.seed = seed_of_repeat(j, n);
        err = judge_take(&v, j, &job, e);
    }
    j->unsettled = v.outcome == KL_OUTCOME_UNSTABLE;
    return err;
}

static kl_err judge_look_up(bool *found, judgement *j, kl_error *e) {
    kl_verdict v = {0};
    *found = false;
    if (keeps(j)) return KL_OK;
    memcpy(j->d.verdict, j->d.question, sizeof j->d.verdict);
    const kl_err err =
        kli_verdicts_find(&v, found, j->t->run->store, j->t->base.arena, j->d.verdict, e);
    *found = !err && *found && kli_verdicts_answer(&v, j->job.task, &j->job.opts);
    return err;
}

static kl_err judge_live(judgement *j, kl_error *e) {
    bool found = false;
    KL_ASSERT(!j->t->journal_only); /* law 8 */
    kl_err err = kli_check_interrupt(j->t, e);
    if (!err) err = kli_pending_check_write(j->t, e);
    if (!err) err = judge_look_up(&found, j, e);
    return err || found ? err : judge_measure(j, e);
}

static void show_stage(void *ctx, kl_stage stage, const char *text) {
    kli_track *t = ctx;
    if (!t->many)
        kli_base_progress("%s: %s %s", t->spec->name, kl_stage_name(stage), text ? text : "");
}

static kl_err judge_judge(kl_verdict *out, judgement *j, kl_arena *a, kl_error *e) {
    kli_track *t = j->t;
    kl_err err = ask_what(j, e);
    if (!err) err = judge_from_journal(out, j, a, e);
    if (err == KL_ENOENT &&
        j->d.key[0]) { /* without a key it is the gate that found no such workload */
        if (t->journal_only) return kli_fail_recall(t, j->d.key, e);
        *e = (kl_error){0};
        t->live = true;
        err = judge_live(j, e);
        if (err) return kli_fail_remember(t, j->d.key, err, e);
        err = judge_answer(out, j, a, e);
        if (!err) out->journaled = !j->fresh;
    }
    if (!err) kli_count_up(t, KL_S("judged"));
    return err;
}

kl_err kli_effect_judge(kl_verdict *out, kl_track *base, kl_arena *a, const kl_gate_job *job,
                        kl_error *e) {
    kl_error local = {0};
    judgement j = {.t = kli_of(base), .job = *job};
    j.job.opts.more_to_come = true;
    j.job.opts.noise = &j.t->run->noise;
    if (!j.job.opts.progress) {
        j.job.opts.progress = show_stage;
        j.job.opts.progress_ctx = j.t;
    }
    kl_err err = judge_judge(out, &j, a, &local);
    j.t->prefetched = (kl_gate_job){0};
    if (err) *e = local;
    return err;
}

void kli_effect_foresee(kl_track *base, const kl_gate_job *job) {
    if (!kli_of(base)->journal_only) kli_of(base)->prefetched = *job;
}

/* ---- text -------------------------------------------------------------------------------- */

/* A refusal depends on the text alone; it is kept all the same, because it is evidence. */
kl_err kli_effect_refuse(kl_verdict *out, kl_track *base, kl_arena *a, const kl_task *task,
                         kl_str source, kl_str path, const kl_error *why, kl_error *e) {
    kli_track *t = kli_of(base);
    kl_verdict made = {0};
    const kl_str parts[] = {KL_S("klineage/verdict/refused/1"), kl_str_of(task->hash), path,
                            source};
    char key[65];
    bool found = false;
    memcpy(key, kli_hash_parts(parts, KL_COUNT(parts)).hex, sizeof key);
    kl_err err = kli_verdicts_find(out, &found, t->run->store, a, key, e);
    if (!err && !found) {
        kl_verdict_refused(&made, t->base.arena, task, path.ptr, why);
        made.kernel_hash = kl_arena_copy(t->base.arena, kl_str_of(kli_hash_of(source).hex));
        err = kli_verdicts_keep(key, t->run->store, t->base.arena, &made, e);
        if (!err) err = kli_verdicts_get(out, t->run->store, a, key, e);
        if (!err) out->journaled = false;
    }
    if (!err) memcpy(base->verdict_key, key, sizeof base->verdict_key);
    return err;
}
