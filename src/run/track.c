/* track.c - one line of work: where it stands, what it says, what its effects are called.
 *
 * A line is gone through from its beginning as often as it takes.  Everything counted here starts
 * anew with each pass, and everything counted comes from answers, never from the clock: so each
 * pass meets the same keys, steps and amounts. Not here: effects (ask.c, judge.c, step.c),
 * processes (tracks.c).  SPDX-License-Identifier: Apache-2.0 */
#include "run/run_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRACK_POLL_NS                                                                              \
    300000000 /* a person does not notice, and a shared file system does not suffer */
#define POLL_MOST_NS 4000000000
#define LEASE_WAIT_NS                                                                              \
    3000000000 /* for a taken track: a killed process takes a moment to be gone                    \
                */
#define LEASE_LOOK_NS 50000000
#define POLL_SHARE                                                                                 \
    50 /* of the time a waiting line goes through its journal at most once: who waits must not     \
          disturb who measures */

/* ---- from beginning to end --------------------------------------------------------------- */

void kli_track_init(kli_track *t, kl_run *r, const kl_track_spec *spec) {
    KL_ASSERT(spec->name && spec->name[0] && spec->body);
    *t = (kli_track){.run = r, .spec = spec, .start_ns = kli_now_ns()};
    t->base = (kl_track){.effects = &kli_journaled,
                         .gate = &r->opts.gate,
                         .phase = "",
                         .budget_microusd = r->opts.budget_microusd};
    t->keep = kl_arena_new();
    t->no_model = KL_NEW(t->keep, kl_error);
}

/* The arena of the last pass may hold what the line left in its ctx: the run frees it. */
static void hand_over(kl_run *r, kl_arena *a) {
    KL_ASSERT(a && a != r->arena);
    *KL_PUSH(r->arena, r->kept, r->n_kept) = a;
}

void kli_track_fini(kli_track *t) {
    if (t->base.arena) hand_over(t->run, t->base.arena);
    kl_model_close(t->model);
    if (t->own_open && t->run->opts.provider->close) t->run->opts.provider->close(t->own);
    kl_executor_close(t->executor);
    kl_lease_release(t->lease);
    kl_arena_free(t->keep);
    *t = (kli_track){0};
}

void kli_track_begin(kli_track *t) {
    kl_arena_free(t->base.arena);
    t->base.arena = kl_arena_new();
    t->base.phase = "";
    t->base.spent_microusd = t->steps = 0;
    t->base.best = 0;
    t->base.verdict_key[0] = '\0';
    t->counts = NULL;
    t->n_counts = 0;
    t->live = false;
    t->slot = NULL;
    t->pending_check.there = false;
    t->prefetched = (kl_gate_job){0};
    t->awaited[0] = '\0';
    if (!t->journal_only) t->n_failures = 0;
}

static bool is_leased(kl_err err, const char *owner) { return err == KL_EBUSY && owner[0]; }

/* One that was killed is gone in a moment, so it is given one before it is said that somebody works
 * on this track. */
kl_err kli_track_lease(kli_track *t, kl_error *e) {
    const char *name = kl_arena_printf(t->keep, "%s/%s", t->run->id, t->spec->name).ptr;
    KL_ASSERT(!t->lease && !t->journal_only); /* a line has one writer, and a reader takes none */
    const int64_t until = kli_now_ns() + LEASE_WAIT_NS;
    char owner[KL_LEASE_OWNER_BYTES];
    kl_err err = kl_lease_take(&t->lease, t->run->store, name, owner, e);
    if (is_leased(err, owner) && !t->many)
        kli_base_progress("%s: waiting for %s", t->spec->name, owner);
    while (is_leased(err, owner) && kli_now_ns() < until) {
        nanosleep(&(struct timespec){.tv_nsec = LEASE_LOOK_NS}, NULL);
        const kl_err stop = kli_check_interrupt(t, e);
        if (stop) return stop;
        err = kl_lease_take(&t->lease, t->run->store, name, owner, e);
    }
    if (!is_leased(err, owner)) return err;
    kl_fail(e, KL_EBUSY, t->spec->name, "%s is running this track of run %.12s", owner, t->run->id);
    return kl_hint(e,
                   "let it finish, then run the same command again; klineage run show %.12s shows "
                   "its progress",
                   t->run->id);
}

kl_err kli_check_interrupt(const kli_track *t, kl_error *e) {
    if (!kli_interrupted()) return KL_OK;
    kl_fail(e, KL_EINTR, t->spec->name, "interrupted");
    return kl_hint(e, "re-run the same command to resume; completed calls are not repeated");
}

/* What is waited for, once as a plain line or over and over in place. */
static void track_show_waiting(kli_track *t, const kl_error *e) {
    t->live = true;
    if (!t->many) kli_base_progress("waiting: %s", e->message);
    if (kl_str_eq(t->waiting, kl_str_of(e->message))) return;
    t->waiting = kl_arena_copy(t->keep, kl_str_of(e->message));
    if (t->many || !isatty(STDERR_FILENO)) kli_say("[%s] waiting: %s", t->spec->name, e->message);
}

/* Does the line still wait for the job that it waited for last?  A look at one job is nothing
 * beside a pass.  Where an answer is given once it is not taken from the pass. */
static bool still_waits(const kli_track *t) {
    kl_verdict unused;
    if (!t->awaited[0] || !kl_executor_ops_of(t->executor)->keeps) return true;
    kl_arena *a = kl_arena_new();
    const kl_err err = kl_executor_poll(&unused, t->executor, a, t->awaited, kl_ignored());
    kl_arena_free(a);
    return err == KL_PENDING;
}

/* Until it is worth looking again, after a pass that took so long.  ^C ends it. */
static void track_rest(const kli_track *t, int64_t pass_ns) {
    int64_t ns = pass_ns * POLL_SHARE;
    ns = ns < TRACK_POLL_NS ? TRACK_POLL_NS : ns > POLL_MOST_NS ? POLL_MOST_NS : ns;
    do nanosleep(&(struct timespec){.tv_nsec = TRACK_POLL_NS}, NULL);
    while ((ns -= TRACK_POLL_NS) > 0 && !kli_interrupted() && still_waits(t));
}

kl_err kli_track_run(kli_track *t, bool once, kl_error *e) {
    for (;;) {
        const int64_t begun_ns = kli_now_ns();
        *e = (kl_error){0};
        kli_track_begin(t);
        kl_err err = t->spec->body(&t->base, t->spec->ctx, e);
        if (!err) err = kli_pending_check_write(t, e);
        if (!err) kli_ahead_cancel(t);
        if (err != KL_PENDING || once || t->journal_only) return err;
        track_show_waiting(t, e);
        track_rest(t, kli_now_ns() - begun_ns);
        err = kli_check_interrupt(t, e);
        if (err) return err;
    }
}

/* ---- keys -------------------------------------------------------------------------------- */

static kli_count *count_at(const kli_track *t, kl_str what) {
    for (size_t i = 0; i < t->n_counts; i++)
        if (kl_str_eq(t->counts[i].what, what)) return &t->counts[i];
    return NULL;
}

int64_t kli_count_of(const kli_track *t, kl_str what) {
    const kli_count *c = count_at(t, what);
    return c ? c->n : 0;
}

void kli_count_up(kli_track *t, kl_str what) {
    kli_count *c = count_at(t, what);
    if (!c) {
        c = KL_PUSH(t->base.arena, t->counts, t->n_counts);
        *c = (kli_count){kl_arena_copy(t->base.arena, what), 0};
    }
    c->n++;
}

void kli_effect_key(char key[65], const kli_track *t, const char *kind, kl_str content) {
    char n[24];
    snprintf(n, sizeof n, "%lld", (long long)kli_count_of(t, content));
    const kl_str parts[] = {KL_S("klineage/effect/1"),
                            kl_str_of(t->run->id),
                            kl_str_of(t->spec->name),
                            kl_str_of(kind),
                            content,
                            kl_str_of(n)};
    memcpy(key, kli_hash_parts(parts, KL_COUNT(parts)).hex, 65);
}

uint64_t kli_hash_seed(const kl_str *parts, size_t n) {
    char digits[17];
    snprintf(digits, sizeof digits, "%.16s", kli_hash_parts(parts, n).hex);
    const uint64_t drawn = strtoull(digits, NULL, 16);
    return drawn ? drawn : 1; /* 0 means "fresh" elsewhere */
}

static uint64_t track_seed(const kl_track *base, const char *name) {
    const kli_track *t = kli_of_const(base);
    const kl_str parts[] = {KL_S("klineage/seed/1"), kl_str_of(t->run->id),
                            kl_str_of(t->spec->name), kl_str_of(name)};
    return kli_hash_seed(parts, KL_COUNT(parts));
}

/* ---- errors on their way to another process ---------------------------------------------- */

kl_err kli_fail_remember(kli_track *t, const char *key, kl_err err, const kl_error *e) {
    if (err == KL_PENDING || t->n_failures == KLI_MAX_FAILURES) return err;
    KL_ASSERT(err && t->n_failures < KLI_MAX_FAILURES);
    kli_failure *f = KL_PUSH(t->keep, t->failures, t->n_failures);
    *f = (kli_failure){.error = *e};
    f->error.code = err;
    memcpy(f->key, key, sizeof f->key);
    return err;
}

kl_err kli_fail_recall(const kli_track *t, const char *key, kl_error *e) {
    for (size_t i = 0; i < t->n_failures; i++) {
        if (memcmp(t->failures[i].key, key, sizeof t->failures[i].key) != 0) continue;
        *e = t->failures[i].error;
        return t->failures[i].error.code;
    }
    kl_fail(e, KL_EIO, t->spec->name,
            "effect %.12s is not in the journal: this line did not ask for it the first time", key);
    return kl_hint(e, "a line must depend on its answers and its seeds alone, not on the clock or "
                      "on what it left in memory");
}

/* ---- what is said ------------------------------------------------------------------------ */

static void track_say(kl_track *base, const char *text) {
    const kli_track *t = kli_of(base);
    char best[48] = "";
    if (!t->live) return;
    long long seconds = (long long)((kli_now_ns() - t->start_ns) / 1000000000);
    if (base->best > 0) snprintf(best, sizeof best, "  best %.3gx", base->best);
    double spent = (double)base->spent_microusd * 1e-6;
    if (!t->many && isatty(STDERR_FILENO))
        kli_base_progress("%lld:%02lld  $%.2f%s  %s", seconds / 60, seconds % 60, spent, best,
                          text);
    else
        kli_say("%lld:%02lld  $%.2f%s  [%s] %s", seconds / 60, seconds % 60, spent, best,
                t->spec->name, text);
}

/* ---- the row ----------------------------------------------------------------------------- */

const kli_run_effects kli_journaled = {
    .name = "journaled",
    .ask = kli_effect_ask,
    .judge = kli_effect_judge,
    .refuse = kli_effect_refuse,
    .prefetch = kli_effect_foresee,
    .step = kli_effect_step,
    .seed = track_seed,
    .say = track_say,
    .model = kli_effect_model,
    .recorded_next = kli_effect_recorded_next,
};
