/* desk.c - everything behind the connections: batches in, jobs to judges, answers out.
 *
 *   batch --take--> done at once   every question has an answer in the journal, or can have none
 *           |-----> later          it does not fit: nothing of it is kept
 *           '-----> open           kept, then queued; done when its last job is
 *   job   --queue--> judge --line--> askers      the same question from several batches is one job
 *                      '--died--> queue, twice; then the askers are told
 *
 * Not here: HTTP (httpd.c), processes (judges.c), rows (kept.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- jobs ------------------------------------------------------------------------------- */

static kli_job *live_job(const kli_desk *d, const char *key) {
    kli_job *job = kli_queue_find(&d->queue, key);
    for (int i = 0; !job && i < d->judges.n; i++) {
        job = d->judges.judges[i].jobs;
        while (job && strcmp(job->key, key) != 0) job = job->next;
    }
    return job;
}

static void ask_for(kli_desk *d, kli_batch *b, size_t i, int64_t now_ns) {
    const kli_question *q = &b->questions[i];
    kli_job *job = live_job(d, q->key);
    d->metrics.counts[KLI_COUNT_COALESCED] += job != NULL;
    if (!job) {
        job = kli_job_new(q, b->tenant, now_ns);
        kli_queue_add(&d->queue, job);
    }
    *KL_PUSH(job->arena, job->askers, job->n_askers) = (kli_asker){b, i};
}

static void queue_batch(kli_desk *d, kli_batch *b) {
    const int64_t now_ns = kli_now_ns();
    KL_ASSERT(b->open);
    b->next = d->batches;
    d->batches = b;
    b->tenant->live += (int64_t)b->open;
    d->asked += b->open;
    d->bytes += b->bytes;
    for (size_t i = 0; i < b->n; i++)
        if (!b->questions[i].answered && !b->questions[i].fail.code) ask_for(d, b, i, now_ns);
}

/* ---- an answer came --------------------------------------------------------------------- */

/* Its clients are told first: the journal's row is for the next start, which would look it up. */
static void batch_is_done(kli_desk *d, kli_batch *b) {
    kli_batch **at = &d->batches;
    while (*at != b) at = &(*at)->next;
    *at = b->next;
    KL_ASSERT(d->bytes >= b->bytes);
    d->bytes -= b->bytes;
    b->waiters++; /* the desk, until that row is written */
    b->next = d->finished;
    d->finished = b;
    d->done(d->done_ctx, b);
}

static void close_batch(kli_desk *d, const kli_batch *b) {
    kl_error e = {0};
    if (kli_batch_keep(d->store, b, false, &e))
        kli_warn("batch %.12s stays open in the journal: %s", b->id, e.message);
}

void kli_desk_settle(kli_desk *d) {
    while (d->finished) {
        kli_batch *b = d->finished;
        d->finished = b->next;
        close_batch(d, b);
        kli_desk_leave(b);
    }
}

/* `why` NULL: its verdict is in the journal. */
static void job_is_done(kli_desk *d, kli_job *job, const kl_error *why, int64_t judge_ns) {
    for (size_t i = 0; i < job->n_askers; i++) {
        kli_batch *b = job->askers[i].batch;
        kli_question *q = &b->questions[job->askers[i].i];
        q->answered = !why;
        if (why) q->fail = *why;
        q->wait_ns = job->given_ns - job->came_ns;
        q->judge_ns = judge_ns;
        d->served.answered += !why;
        KL_ASSERT(b->open > 0 && d->asked > 0 && b->tenant->live > 0);
        d->asked--;
        b->tenant->live--;
        if (--b->open == 0) batch_is_done(d, b);
    }
    kli_job_free(job);
}

static void count_verdict(kli_desk *d, const kli_job *job, const json_t *o) {
    const kl_str outcome = kli_json_text_or(o, "outcome", (kl_str){0});
    const int64_t kernel_ns = kli_json_int_or(o, "kernel_ns", 0),
                  judge_ns = kli_json_int_or(o, "judge_ns", 0);
    for (int i = 0; i <= KL_OUTCOME_REFUSED; i++)
        d->metrics.outcomes[i] += kl_str_eq(outcome, kl_str_of(kl_outcome_name((kl_outcome)i)));
    if (kli_json_bool_or(o, "journaled", false)) return;
    d->metrics.counts[KLI_COUNT_JUDGED]++;
    d->served.judged++;
    d->mean_seconds += ((double)judge_ns / 1e9 - d->mean_seconds) / 8;
    kli_histogram_add(&d->metrics.wait, job->given_ns - job->came_ns);
    kli_histogram_add(&d->metrics.kernel, kernel_ns);
    kli_histogram_add(&d->metrics.beyond, kli_now_ns() - job->given_ns - kernel_ns);
}

/* Interrupted, or a journal that was busy: it is asked again. */
static bool again(kli_desk *d, kli_job *job, kl_err code) {
    if (code != KL_EINTR && code != KL_EBUSY && code != KL_ESPAWN) return false;
    if (++job->tries >= KLI_REWARD_TRIES) return false;
    kli_queue_add(&d->queue, job);
    return true;
}

static void read_error(kl_error *out, const json_t *o) {
    *out = (kl_error){.code = (kl_err)kli_json_int_or(o, "error", KL_EIO)};
    snprintf(out->message, sizeof out->message, "%s",
             kli_json_text_or(o, "message", KL_S("?")).ptr);
    snprintf(out->hint, sizeof out->hint, "%s", kli_json_text_or(o, "hint", KL_S("")).ptr);
}

static void job_failed(kli_desk *d, kli_job *job, const kl_error *why) {
    if (again(d, job, why->code)) return;
    d->metrics.counts[KLI_COUNT_FAILED]++;
    job_is_done(d, job, why, 0);
}

static void read_judge_line(kli_desk *d, kli_judge *j, kl_str line) {
    json_t *o = NULL;
    kl_error why;
    if (kli_json_parse(&o, line, KL_S("judge"), kl_ignored())) return; /* no answer: see its end */
    kli_job *job = kli_judge_take(j, kli_json_text_or(o, "key", KL_S("")).ptr);
    if (job && json_object_get(o, "error")) {
        read_error(&why, o);
        job_failed(d, job, &why);
    } else if (job) {
        count_verdict(d, job, o);
        job_is_done(d, job, NULL,
                    kli_json_bool_or(o, "journaled", false) ? 0
                                                            : kli_json_int_or(o, "judge_ns", 0));
    }
    json_decref(o);
}

/* ---- judges ----------------------------------------------------------------------------- */

static void judge_ended(kli_desk *d, kli_judge *j) {
    kl_error why = {0};
    kli_job *next;
    d->metrics.counts[KLI_COUNT_RESTARTS]++;
    kl_fail(&why, KL_ESPAWN, "judge", "the process that judged it ended before it said anything");
    kl_hint(&why, "its last words are on the server's stderr; klineage doctor");
    kli_warn("a judge ended, with %d kernels at hand; it is started again", j->n_jobs);
    for (kli_job *job = kli_judge_end(j, false); job; job = next) {
        next = job->next;
        job_failed(d, job, &why);
    }
}

static void hear(kli_desk *d, kli_judge *j) {
    kl_str line;
    kl_arena *a = kl_arena_new();
    const bool alive = kli_judge_read(j);
    while (kli_judge_line(&line, a, j)) read_judge_line(d, j, line);
    if (!alive) judge_ended(d, j);
    kl_arena_free(a);
}

static void start(kli_desk *d, kli_judge *j) {
    kl_error e = {0};
    if (j->pid || j->not_before_ns > kli_now_ns() || d->stopping) return;
    if (kli_judge_start(j, &d->judges, &e)) {
        kli_warn("%s", e.message);
        j->not_before_ns = kli_now_ns() + INT64_C(1000000000);
    }
}

void kli_desk_turn(kli_desk *d) {
    for (int i = 0; i < d->judges.n; i++) {
        kli_judge *j = &d->judges.judges[i];
        if (j->pid) hear(d, j);
        if (!j->pid) start(d, j);
        if (j->pid) kli_judge_flush(j);
    }
}

void kli_desk_give(kli_desk *d) {
    for (int i = 0; i < d->judges.n && !d->stopping; i++) {
        kli_judge *j = &d->judges.judges[i];
        while (j->pid && j->n_jobs < d->judges.window && d->queue.n)
            kli_judge_give(j, kli_queue_take(&d->queue));
    }
}

int kli_desk_judged(const kli_desk *d) {
    int n = 0;
    for (int i = 0; i < d->judges.n; i++) n += d->judges.judges[i].n_jobs;
    return n;
}

/* ---- a batch comes ---------------------------------------------------------------------- */

kli_batch *kli_desk_named(kli_desk *d, const kli_tenant *t, const char *id) {
    kli_batch *b = d->batches;
    while (b && (b->tenant != t || strcmp(b->id, id) != 0)) b = b->next;
    return b;
}

void kli_desk_leave(kli_batch *b) {
    KL_ASSERT(b->waiters > 0);
    if (--b->waiters == 0 && !b->open) kli_batch_free(b);
}

/* What the journal knows already. */
static kl_err look_up_answers(kli_desk *d, kli_batch *b, kl_error *e) {
    char verdict[65];
    for (size_t i = 0; i < b->n; i++) {
        kli_question *q = &b->questions[i];
        if (q->fail.code || q->answered) continue;
        const kl_err err = kli_answer_find(verdict, &q->answered, d->store, q->key, e);
        if (err) return err;
        b->open -= q->answered;
    }
    return KL_OK;
}

static int until_room(const kli_desk *d, size_t open) {
    const double judged = d->mean_seconds > 0 ? d->mean_seconds : 1;
    const double seconds = judged * (double)open / (d->judges.n * d->judges.window);
    return (int)fmin(60, 1 + ceil(seconds));
}

/* `open`: kernels that it adds; none where the same batch is open already. */
static bool batch_fits(int *seconds, const char **why, const kli_desk *d, kli_batch *b,
                       size_t open) {
    *why = "the tenant's quota is used up";
    *seconds = kli_tenant_refuses(b->tenant, (int64_t)b->n, (int64_t)open, kli_now_ns());
    if (*seconds) return false;
    if (d->asked + open > KLI_REWARD_QUEUE || (open && d->bytes + b->bytes > KLI_REWARD_BODIES)) {
        *why = "the queue is full";
        *seconds = until_room(d, open);
        return false;
    }
    b->tenant->allowance -= (double)b->n;
    return true;
}

static void count_batch(kli_desk *d, const kli_batch *b) {
    d->metrics.counts[KLI_COUNT_BATCHES]++;
    d->metrics.counts[KLI_COUNT_KERNELS] += (int64_t)b->n;
    for (size_t i = 0; i < b->n; i++) d->metrics.counts[KLI_COUNT_HITS] += b->questions[i].answered;
}

/* Asked once more, since something of it failed: its old row must not come after the new one. */
static void settle_before(kli_desk *d, const kli_batch *b) {
    const kli_batch *old = d->finished;
    while (old && strcmp(old->id, b->id) != 0) old = old->next;
    if (old) kli_desk_settle(d);
}

kl_err kli_desk_take(kli_admission *how, int *seconds, const char **why, kli_desk *d, kli_batch **b,
                     kl_error *e) {
    kli_batch *same = kli_desk_named(d, (*b)->tenant, (*b)->id);
    kl_err err = look_up_answers(d, *b, e);
    *how = KLI_DESK_LATER;
    if (err || !batch_fits(seconds, why, d, *b, same ? 0 : (*b)->open)) return err;
    settle_before(d, *b);
    if ((*b)->open && !same) err = kli_batch_keep(d->store, *b, true, e);
    if (err) return err;
    count_batch(d, *b);
    *how = (*b)->open ? KLI_DESK_OPEN : KLI_DESK_DONE;
    if (*how == KLI_DESK_OPEN && same) {
        kli_batch_free(*b);
        *b = same;
    } else if (*how == KLI_DESK_OPEN) {
        queue_batch(d, *b);
    }
    return KL_OK;
}

kl_err kli_desk_recall(kli_batch **out, kli_desk *d, kli_tenant *t, const char *id, kl_error *e) {
    kli_batch *b = NULL;
    kl_err err = kli_batch_find(&b, d->store, &d->tenants, t, id, e);
    if (!err) err = look_up_answers(d, b, e);
    for (size_t i = 0; !err && i < b->n; i++) {
        kli_question *q = &b->questions[i];
        if (q->answered || q->fail.code) continue;
        kl_fail(&q->fail, KL_ENOENT, NULL, "it could not be judged then");
        kl_hint(&q->fail, "send the batch again");
        b->open--;
    }
    if (err) return kli_batch_free(b), err;
    *out = b;
    return KL_OK;
}

/* ---- the answer ------------------------------------------------------------------------- */

static json_t *failure_json(const kli_question *q) {
    return json_pack("{so sn ss so so}", "id", kli_json_str(q->id), "reward", "error",
                     kl_err_name(q->fail.code), "message", kli_json_str(kl_str_of(q->fail.message)),
                     "hint", kli_json_str(kl_str_of(q->fail.hint)));
}

static json_t *speedup_json(const kl_verdict *v, const kli_reward_facts *f) {
    if (!(f->ratio > 0)) return json_null();
    return json_pack("{so so so ss so}", "ratio", kli_json_real(f->ratio), "low",
                     kli_json_real(f->low), "high", kli_json_real(f->high), "call",
                     kl_decision_name(f->call), "baseline",
                     kli_json_str(v->comparisons[0].baseline));
}

static json_t *answered_json(const kli_batch *b, const kli_question *q, const kl_verdict *v,
                             const char *key) {
    const kli_reward_facts f = kli_reward_facts_of(v);
    const char assurance[2] = {v->assurance, 0};
    json_t *o =
        json_pack("{so so ss ss so so ss ss sb sI sI sI}", "id", kli_json_str(q->id), "reward",
                  kli_json_real(b->formula->of(&f)), "outcome", kl_outcome_name(v->outcome),
                  "stage", kl_stage_name(v->stage), "why", kli_json_str(v->why), "speedup",
                  speedup_json(v, &f), "assurance", assurance, "verdict", key, "journaled",
                  q->judge_ns == 0, "wait_ns", (json_int_t)q->wait_ns, "judge_ns",
                  (json_int_t)q->judge_ns, "kernel_ns", (json_int_t)(v->total_ns - v->overhead_ns));
    if (b->verdicts) json_object_set_new(o, "of", kl_verdict_json(v));
    return o;
}

/* Read back from the journal, also the first time. */
static kl_err question_answer(json_t **out, kli_desk *d, kl_arena *a, const kli_batch *b,
                              const kli_question *q, kl_error *e) {
    char key[65];
    bool found = false;
    kl_verdict *v = KL_NEW(a, kl_verdict);
    *out = NULL;
    if (q->fail.code) return *out = failure_json(q), KL_OK;
    kl_err err = kli_answer_find(key, &found, d->store, q->key, e);
    if (err) return err;
    if (!found) {
        *out = json_pack("{so sn ss}", "id", kli_json_str(q->id), "reward", "state", "pending");
        return KL_OK;
    }
    err = kli_verdicts_get(v, d->store, a, key, e);
    if (!err) *out = answered_json(b, q, v, key);
    return err;
}

kl_err kli_desk_answer(json_t **out, kli_desk *d, const kli_batch *b, kl_error *e) {
    json_t *rewards = json_array(), *one = NULL;
    kl_err err = KL_OK;
    for (size_t i = 0; !err && i < b->n; i++) {
        kl_arena *a = kl_arena_new();
        err = question_answer(&one, d, a, b, &b->questions[i], e);
        if (!err) json_array_append_new(rewards, one);
        kl_arena_free(a);
    }
    *out = json_pack("{ss si ss ss ss so}", "schema", "klineage/rewards", "version", 1, "id", b->id,
                     "state", b->open ? "pending" : "done", "formula", b->formula->name, "rewards",
                     rewards);
    if (err) json_decref(*out), *out = NULL;
    return err;
}

/* ---- open and close --------------------------------------------------------------------- */

static void go_on(void *ctx, kli_batch *b) {
    kli_desk *d = ctx;
    kl_error e = {0};
    if (look_up_answers(d, b, &e)) kli_warn("batch %.12s: %s", b->id, e.message);
    if (!b->open) {
        close_batch(d, b);
        kli_batch_free(b);
        return;
    }
    queue_batch(d, b);
}

static kl_err lease(kli_desk *d, kl_error *e) {
    char owner[KL_LEASE_OWNER_BYTES] = "";
    const kl_err err = kl_lease_take(&d->lease, d->store, "reward", owner, e);
    if (err == KL_EBUSY && owner[0]) {
        kl_fail(e, KL_EBUSY, "serve", "%s serves rewards from this journal", owner);
        kl_hint(e, "stop it, or use another --store PATH");
    }
    return err;
}

kl_err kli_desk_open(kli_desk *d, const kli_reward_opts *o, kl_error *e) {
    const bool others = strncmp(o->executor, "spool:", 6) == 0;
    d->opts = o;
    d->judges = (kli_judges){.store = o->store,
                             .executor = o->executor,
                             .require_assurance = o->require_assurance,
                             .window = others ? KLI_REWARD_WINDOW : 1,
                             .n = others ? 1 : o->judges};
    d->judges.judges = calloc((size_t)d->judges.n, sizeof *d->judges.judges);
    if (!d->judges.judges) kl_oom(sizeof *d->judges.judges);
    kl_err err = kli_tenants_open(&d->tenants, o, e);
    if (!err) err = kl_store_open(&d->store, o->store, e);
    if (!err) err = lease(d, e);
    if (!err) err = kli_batch_each_open(d->store, &d->tenants, go_on, d, e);
    if (!err && d->queue.n) kli_say("going on with %zu kernels of the last time", d->queue.n);
    return err;
}

static void drop_all(kli_job *job) {
    kli_job *next;
    for (; job; job = next) {
        next = job->next;
        kli_job_free(job);
    }
}

void kli_desk_close(kli_desk *d) {
    kli_batch *next;
    kli_desk_settle(d);
    d->served.left = (int64_t)d->queue.n + kli_desk_judged(d);
    for (int i = 0; i < d->judges.n; i++)
        drop_all(kli_judge_end(&d->judges.judges[i], d->judges.judges[i].n_jobs == 0));
    drop_all(d->queue.first);
    for (kli_batch *b = d->batches; b; b = next) {
        next = b->next;
        kli_batch_free(b);
    }
    free(d->judges.judges);
    kl_lease_release(d->lease);
    kl_store_close(d->store);
    kli_tenants_close(&d->tenants);
}
