/* judge.c - a question to the gate: looked up, else judged here or through a spool, kept, and only then used.
 *
 *   effect of this run -> verdict                           a resumed line sees the verdict of the first time, whatever was measured since
 *    '-> verdict of the same question, by anybody           free; this run's effect then names it
 *         '-> gate (once more if it was unstable) | spool    kept, named, used; a quick look with a cap of its own is taken once
 *
 * A verdict that stays unstable is named only when the line goes on from it: until then nothing rests on it, and a run that gave up
 * because the machine was busy measures anew when it is resumed.  A spool keeps giving the verdict of a job, so there that is another job.
 *
 * The verdict is read back from the store, also the first time.  Not here: what a verdict says (gate/), which one is newest (verdicts.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/run_impl.h"
#include "run/verdicts.h"
#include "base/hash.h"
#include "base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REPEATS 64 /* of a question whose answer never settles */

typedef struct {
    kl_track *t;
    const kl_task *task;
    const kl_kernel *kernel;
    kl_gate_opts opts;
    char key[65];      /* of the effect */
    char question[65]; /* what is asked of the gate */
    char verdict[65];  /* key under which the answer is kept */
    bool fresh;        /* measured now */
    bool unsettled;    /* unstable, twice */
} judgement;

/* ---- what is asked ------------------------------------------------------------------------------------------------- */

/* In a spool the device is somebody else's, so only what is sent can be the question. */
static void spool_question(judgement *j) {
    kl_arena *a = j->t->arena;
    const kl_gate_opts *o = &j->opts;
    kl_hasher h;
    kl_hasher_init(&h);
    kl_hasher_add(&h, KL_S("klineage/run/spool/1"));
    kl_hasher_add(&h, kl_str_of(j->task->hash));
    kl_hasher_add(&h, kl_str_of(j->kernel->hash));
    kl_hasher_add(&h, kl_str_of(o->workload));
    kl_hasher_add(&h, kl_str_of(o->baseline));
    kl_hasher_add(&h, kl_str_of(o->arch));
    kl_hasher_add(&h, kl_arena_printf(a, "%d %d %llu", o->check_only, o->quick, (unsigned long long)o->seed));
    kl_hasher_add(&h, kl_arena_printf(a, "%g %g %g %g %g", o->min_pairs, o->min_seconds, o->max_seconds, o->half_width,
                                      o->abandon_below));
    if (o->against) kl_hasher_add(&h, kl_str_of(o->against->hash));
    memcpy(j->question, kl_hasher_end(&h).hex, sizeof j->question);
}

static kl_err open_gate(kl_track *t, kl_error *e) { return t->gate ? KL_OK : kl_gate_open(&t->gate, e); }

/* The question and what else is demanded of an answer. */
static kl_str content_of(const judgement *j) {
    const char required[2] = {j->opts.require_assurance, 0};
    return kl_arena_printf(j->t->arena, "%s %s", j->question, required);
}

static kl_err ask_what(judgement *j, kl_error *e) {
    kl_track *t = j->t;
    kl_err err = KL_OK;
    if (t->run->opts.spool) {
        spool_question(j);
    } else {
        err = open_gate(t, e);
        if (!err) err = kl_gate_key(j->question, t->gate, t->arena, j->task, j->kernel, &j->opts, e);
    }
    if (!err) kli_effect_key(j->key, t, "judge", content_of(j));
    return err;
}

/* ---- the answer ------------------------------------------------------------------------------------------------------ */

static kl_err read_verdict(kl_verdict *out, judgement *j, kl_arena *a, const char *key, kl_error *e) {
    kl_track *t = j->t;
    kl_err err = kl_verdicts_get(out, t->run->store, a, key, e);
    if (err == KL_ENOENT)
        err = kl_fail(e, KL_EIO, "journal", "effect %.12s was judged, but its verdict is gone", j->key);
    if (err) return err;
    kli_count_up(t, content_of(j));
    memcpy(t->verdict_key, key, sizeof t->verdict_key);
    return KL_OK;
}

/* Errors: KL_ENOENT when this run has none yet. */
static kl_err from_journal(kl_verdict *out, judgement *j, kl_arena *a, kl_error *e) {
    kl_store_effect f;
    kl_track *t = j->t;
    kl_err err = kl_store_effect_get(&f, t->run->store, t->arena, j->key, e);
    if (err) return err;
    return read_verdict(out, j, a, f.answer.ptr, e);
}

static kl_err write_down(kl_track *t, const kli_doubt *d, kl_error *e) {
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

kl_err kli_doubt_settle(kl_track *t, kl_error *e) {
    if (!t->doubt.there) return KL_OK;
    kl_err err = write_down(t, &t->doubt, e);
    if (!err) t->doubt.there = false;
    return err;
}

static kl_err answer(kl_verdict *out, judgement *j, kl_arena *a, kl_error *e) {
    kl_track *t = j->t;
    kli_doubt d = {.purpose = kl_str_of(j->opts.workload ? j->opts.workload : t->spec->workload),
                   .ordinal = kli_count_of(t, KL_S("judged"))};
    memcpy(d.key, j->key, sizeof d.key);
    memcpy(d.question, j->question, sizeof d.question);
    memcpy(d.verdict, j->verdict, sizeof d.verdict);
    if (!j->unsettled) {
        kl_err err = write_down(t, &d, e);
        return err ? err : from_journal(out, j, a, e); /* another process may have been first */
    }
    d.purpose = kl_arena_copy(t->arena, d.purpose);
    d.there = true;
    t->doubt = d;
    return read_verdict(out, j, a, d.verdict, e);
}

/* ---- judging ----------------------------------------------------------------------------------------------------------- */

static kl_err measure(kl_verdict *v, judgement *j, kl_error *e) {
    kl_track *t = j->t;
    kl_err err = kl_gate_run(v, t->gate, t->arena, j->task, j->kernel, &j->opts, e);
    memcpy(j->verdict, j->question, sizeof j->verdict);
    return err ? err : kl_verdicts_keep(j->verdict, t->run->store, t->arena, v, e);
}

static kl_err judge_here(judgement *j, kl_error *e) {
    kl_track *t = j->t;
    kl_verdict v = {0};
    bool found = false;
    memcpy(j->verdict, j->question, sizeof j->verdict);
    kl_err err = kl_verdicts_find(&v, &found, t->run->store, t->arena, j->verdict, e);
    if (err || (found && kl_verdicts_answer(&v, j->task, &j->opts))) return err;
    j->fresh = true;
    err = measure(&v, j, e);
    const bool glance = j->opts.quick && j->opts.max_seconds > 0; /* who asked for a short look has had it */
    if (!err && v.outcome == KL_UNSTABLE && !glance)
        err = measure(&v, j, e); /* a busy minute is no property of a kernel */
    j->unsettled = v.outcome == KL_UNSTABLE;
    return err;
}

/* The same question as the n-th job: the root of its random numbers tells it apart from the one before. */
static uint64_t seed_of_repeat(const judgement *j, int n) {
    char digits[17];
    kl_hasher h;
    kl_hasher_init(&h);
    kl_hasher_add(&h, KL_S("klineage/run/repeat/1"));
    kl_hasher_add(&h, kl_str_of(j->question));
    kl_hasher_add(&h, kl_arena_printf(j->t->arena, "%d", n));
    snprintf(digits, sizeof digits, "%.16s", kl_hasher_end(&h).hex);
    const uint64_t seed = strtoull(digits, NULL, 16);
    return seed ? seed : 1; /* 0 means "fresh" */
}

/* One visit to the other host answers this question and the one that is foreseen.  What fails here fails again when its turn comes. */
static void put_foreseen(kl_track *t) {
    const kli_foreseen *f = &t->foreseen;
    kl_error e = {0};
    char id[65];
    if (f->kernel && kl_spool_put(id, t->run->opts.spool, t->gate, t->arena, f->task, f->kernel, &f->opts, &e))
        kl_debug("not put ahead: %s", e.message);
}

/* The verdict of one job, kept once however often the spool gives it. */
static kl_err from_spool(kl_verdict *v, judgement *j, const kl_gate_opts *o, kl_error *e) {
    kl_track *t = j->t;
    kl_verdict kept = {0};
    bool found = false;
    kl_err err = kl_spool_put(j->verdict, t->run->opts.spool, t->gate, t->arena, j->task, j->kernel, o, e);
    if (!err) err = kl_spool_get(v, t->arena, t->run->opts.spool, j->verdict, e);
    if (err == KL_PENDING) put_foreseen(t);
    if (!err) err = kl_verdicts_find(&kept, &found, t->run->store, t->arena, j->verdict, e);
    j->fresh = !err && !(found && strcmp(kept.receipt, v->receipt) == 0);
    if (err || !j->fresh) return err;
    v->journaled = false;
    return kl_verdicts_keep(j->verdict, t->run->store, t->arena, v, e);
}

/* An unstable verdict that comes in now is this line's answer; one that was there before is what somebody gave up on. */
static kl_err judge_there(judgement *j, kl_error *e) {
    kl_gate_opts o = j->opts;
    kl_verdict v = {0};
    kl_err err = open_gate(j->t, e);
    if (!err) err = from_spool(&v, j, &o, e);
    for (int n = 1; !err && v.outcome == KL_UNSTABLE && !j->fresh && !j->opts.seed && n <= MAX_REPEATS; n++) {
        o.seed = seed_of_repeat(j, n);
        err = from_spool(&v, j, &o, e);
    }
    j->unsettled = v.outcome == KL_UNSTABLE;
    return err;
}

static kl_err judge_live(judgement *j, kl_error *e) {
    kl_err err = kli_check_interrupt(j->t, e);
    if (!err) err = kli_doubt_settle(j->t, e);
    if (err) return err;
    return j->t->run->opts.spool ? judge_there(j, e) : judge_here(j, e);
}

static void show_stage(void *ctx, kl_stage stage, const char *text) {
    kl_track *t = ctx;
    if (!t->many) kl_progress("%s: %s %s", t->spec->name, kl_stage_name(stage), text ? text : "");
}

static kl_err judge(kl_verdict *out, judgement *j, kl_arena *a, kl_error *e) {
    kl_track *t = j->t;
    kl_err err = ask_what(j, e);
    if (!err) err = from_journal(out, j, a, e);
    if (err == KL_ENOENT && j->key[0]) { /* without a key it is the gate that found no such workload */
        if (t->journal_only) return kli_fail_recall(t, j->key, e);
        *e = (kl_error){0};
        t->live = true;
        err = judge_live(j, e);
        if (err) return kli_fail_remember(t, j->key, err, e);
        err = answer(out, j, a, e);
        if (!err) out->journaled = !j->fresh;
    }
    if (!err) kli_count_up(t, KL_S("judged"));
    return err;
}

kl_err kl_judge(kl_verdict *out, kl_track *t, kl_arena *a, const kl_task *task, const kl_kernel *k,
                const kl_gate_opts *o, kl_error *e) {
    kl_error local = {0};
    judgement j = {.t = t, .task = task, .kernel = k, .opts = o ? *o : t->run->opts.gate};
    j.opts.more_to_come = true;
    if (!j.opts.progress) {
        j.opts.progress = show_stage;
        j.opts.progress_ctx = t;
    }
    kl_err err = judge(out, &j, a, &local);
    t->foreseen = (kli_foreseen){0};
    if (err && e) *e = local;
    return err;
}

void kl_foresee(kl_track *t, const kl_task *task, const kl_kernel *k, const kl_gate_opts *o) {
    if (!t->run->opts.spool || t->journal_only) return;
    t->foreseen = (kli_foreseen){task, k, o ? *o : t->run->opts.gate};
}

/* ---- text ---------------------------------------------------------------------------------------------------------------- */

/* A refusal depends on the text alone; it is kept all the same, because it is evidence. */
static kl_err refuse(kl_verdict *out, kl_track *t, kl_arena *a, const kl_task *task, kl_str source, kl_str path,
                     const kl_error *why, kl_error *e) {
    kl_verdict made = {0};
    kl_hasher h;
    char key[65];
    bool found = false;
    kl_hasher_init(&h);
    kl_hasher_add(&h, KL_S("klineage/verdict/refused/1"));
    kl_hasher_add(&h, kl_str_of(task->hash));
    kl_hasher_add(&h, path);
    kl_hasher_add(&h, source);
    memcpy(key, kl_hasher_end(&h).hex, sizeof key);
    kl_err err = kl_verdicts_find(out, &found, t->run->store, a, key, e);
    if (!err && !found) {
        kl_verdict_refused(&made, t->arena, task, path.ptr, why);
        made.kernel_hash = kl_arena_copy(t->arena, kl_str_of(kl_hash_of(source).hex));
        err = kl_verdicts_keep(key, t->run->store, t->arena, &made, e);
        if (!err) err = kl_verdicts_get(out, t->run->store, a, key, e);
        if (!err) out->journaled = false;
    }
    if (!err) memcpy(t->verdict_key, key, sizeof t->verdict_key);
    return err;
}

kl_err kl_judge_text(kl_verdict *out, kl_kernel **k, kl_track *t, kl_arena *a, const kl_task *task, kl_str source,
                     const kl_surface *s, const kl_gate_opts *o, kl_error *e) {
    kl_error why = {0};
    kl_str path = kl_arena_printf(a, "candidate%s", s->suffix);
    kl_kernel *parsed = NULL;
    kl_err err = kl_kernel_parse(&parsed, a, source, path, s, NULL, &why);
    *k = err ? NULL : parsed;
    if (!err) return kl_judge(out, t, a, task, parsed, o, e);
    if (err == KL_EPARSE || err == KL_ELIMIT || err == KL_EINVAL) return refuse(out, t, a, task, source, path, &why, e);
    *e = why;
    return err;
}
