/* judge.c - a judge: a gate behind stdin and stdout, a line of JSON each way.
 *
 *   question -> the executor's key -> journal: the verdict          nobody measures again
 *                     '-> submit, poll -> journal: the verdict
 *                                         -> journal: question -> verdict -> the answer's line
 *
 * Each arrow is on disk before the next one, so a judge that is killed anywhere leaves either
 * nothing, or a verdict that its successor finds.  One question at a time where this process
 * judges; many where others do and this one waits for them.
 *
 * Not here: who asked, and what an answer is worth.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reward/reward_impl.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "kernel/kernel.h"
#include <klineage/run.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_TASKS 64   /* that are kept in memory */
#define LOOK_MS 50      /* at what others judge */
#define SOURCE "kernel" /* in messages: the client's name for it is no part of a verdict */

typedef struct {
    kl_arena *arena;
    kl_task *task;
} known_task;

typedef struct {
    kl_arena *arena;
    json_t *line;
    kli_question q;
    kl_str tenant, path;
    kl_gate_job job;
    char id[65], key[65]; /* the executor's; the journal's */
    bool submitted, journaled;
    int measured;
    kl_verdict verdict;
    int64_t begin_ns;
} held_question;

typedef struct {
    kl_store *store;
    kl_executor *executor;
    kl_arena *arena;
    kl_noise_record noise;
    known_task tasks[MOST_TASKS];
    size_t n_tasks;
    held_question *held[KLI_REWARD_WINDOW];
    int n_held, window;
    char require_assurance;
    kl_buf from;
} judge;

/* ---- what is asked ---------------------------------------------------------------------- */

static void forget_tasks(judge *j) {
    KL_ASSERT(!j->n_held);
    for (size_t i = 0; i < j->n_tasks; i++) kl_arena_free(j->tasks[i].arena);
    j->n_tasks = 0;
}

static kl_err task_for(kl_task **out, judge *j, const held_question *h, kl_error *e) {
    for (size_t i = 0; i < j->n_tasks; i++)
        if (strcmp(j->tasks[i].task->hash, h->q.version) == 0)
            return *out = j->tasks[i].task, KL_OK;
    known_task *k = &j->tasks[j->n_tasks];
    k->arena = kl_arena_new();
    kl_err err = kl_task_load(&k->task, k->arena, h->path.ptr, e);
    if (!err && strcmp(k->task->hash, h->q.version) != 0) {
        err = kl_fail(e, KL_EINVAL, h->path.ptr, "the task has changed since the service started");
        kl_hint(e, "start the service again");
    }
    if (err) return kl_arena_free(k->arena), err;
    j->n_tasks++;
    *out = k->task;
    return KL_OK;
}

static void copy_hash(char to[65], kl_str from) {
    KL_ASSERT(from.len == 64);
    memcpy(to, from.ptr, 64);
    to[64] = '\0';
}

static kl_err read_question(held_question *h, kl_str line, kl_error *e) {
    kl_err err = kli_json_parse(&h->line, line, KL_S("question"), e);
    if (!err) err = kli_question_read(&h->q, json_object_get(h->line, "question"), e);
    if (err) return err;
    h->tenant = kli_json_text_or(h->line, "tenant", (kl_str){0});
    h->path = kli_json_text_or(h->line, "path", (kl_str){0});
    copy_hash(h->q.key, kli_json_text_or(h->line, "key", (kl_str){0}));
    copy_hash(h->q.version, kli_json_text_or(h->line, "version", (kl_str){0}));
    h->begin_ns = kli_now_ns();
    return KL_OK;
}

static const char *or_null(kl_str s) { return s.len ? s.ptr : NULL; }

/* `job.kernel` stays NULL where the source does not follow its format: that is a verdict. */
static kl_err load_question(judge *j, held_question *h, kl_error *refusal, kl_error *e) {
    const kl_surface *s = kl_surface_by_name(h->q.surface);
    const kl_kernel_opts opts = {0};
    kl_task *t = NULL;
    kl_kernel *k = NULL, *against = NULL;
    KL_ASSERT(s); /* the server looked */
    const kl_str name = kl_arena_printf(h->arena, SOURCE "%s", s->suffix);
    kl_err err = task_for(&t, j, h, e);
    if (!err && h->q.against.len)
        err = kl_kernel_parse(&against, h->arena, h->q.against, KL_S("against"), s, &opts, e);
    if (err) return err;
    if (kl_kernel_parse(&k, h->arena, h->q.kernel, name, s, &opts, refusal)) k = NULL;
    h->job = (kl_gate_job){.task = t, .kernel = k};
    h->job.opts = (kl_gate_opts){.workload = or_null(h->q.workload),
                                 .baseline = or_null(h->q.baseline),
                                 .against = against,
                                 .check_only = h->q.check_only,
                                 .quick = h->q.quick,
                                 .more_to_come = true,
                                 .require_assurance = j->require_assurance,
                                 .compile.require_assurance = j->require_assurance,
                                 .noise = &j->noise};
    return KL_OK;
}

/* ---- the answer ------------------------------------------------------------------------- */

static void say_line(const json_t *o) {
    kl_arena *a = kl_arena_new();
    const kl_str line = kl_arena_printf(a, "%s\n", kli_json_dump(a, o, false).ptr);
    if (!kli_fs_write_all(STDOUT_FILENO, line)) exit(1); /* the server is gone */
    kl_arena_free(a);
}

static void say_verdict(const held_question *h) {
    const kl_verdict *v = &h->verdict;
    json_t *o = json_pack("{ss ss ss sb sI sI}", "key", h->q.key, "verdict", h->key, "outcome",
                          kl_outcome_name(v->outcome), "journaled", h->journaled, "judge_ns",
                          (json_int_t)(kli_now_ns() - h->begin_ns), "kernel_ns",
                          (json_int_t)(h->journaled ? 0 : v->total_ns - v->overhead_ns));
    say_line(o);
    json_decref(o);
}

static void say_error(const held_question *h, const kl_error *e) {
    json_t *o =
        json_pack("{ss si so so}", "key", h->q.key, "error", e->code, "message",
                  kli_json_str(kl_str_of(e->message)), "hint", kli_json_str(kl_str_of(e->hint)));
    say_line(o);
    json_decref(o);
}

/* Keep it, then say it. */
static kl_err keep_and_say(judge *j, held_question *h, kl_error *e) {
    kl_err err = KL_OK;
    h->verdict.journaled = false;
    if (!h->journaled) err = kli_verdicts_keep(h->key, j->store, h->arena, &h->verdict, e);
    if (!err) err = kli_answer_keep(j->store, &h->q, h->tenant, h->key, e);
    if (!err) say_verdict(h);
    return err;
}

static kl_err refuse_question(judge *j, held_question *h, const kl_error *why, kl_error *e) {
    const kl_str parts[] = {KL_S("klineage/reward/refused/1"), kl_str_of(h->q.key)};
    kl_verdict kept;
    memcpy(h->key, kli_hash_parts(parts, KL_COUNT(parts)).hex, sizeof h->key);
    kl_err err = kli_verdicts_find(&kept, &h->journaled, j->store, h->arena, h->key, e);
    if (err) return err;
    kl_verdict_refused(&h->verdict, h->arena, h->job.task, SOURCE, why);
    h->verdict.kernel_hash = kl_arena_copy(h->arena, kl_str_of(kli_hash_of(h->q.kernel).hex));
    return keep_and_say(j, h, e);
}

/* ---- judging ---------------------------------------------------------------------------- */

/* Two tenants do not share a verdict; who serves one shares the journal with every command. */
static void journal_key(held_question *h) {
    const kl_str parts[] = {KL_S("klineage/reward/verdict/1"), h->tenant, kl_str_of(h->id)};
    memcpy(h->key, h->tenant.len ? kli_hash_parts(parts, KL_COUNT(parts)).hex : h->id,
           sizeof h->key);
}

/* Where a job keeps its verdict, tenants are told apart by another root of the draws. */
static uint64_t seed_of_tenant(const held_question *h) {
    const kl_str parts[] = {KL_S("klineage/reward/seed/1"), h->tenant, kl_str_of(h->q.key)};
    char digits[17] = "";
    memcpy(digits, kli_hash_parts(parts, KL_COUNT(parts)).hex, 16);
    return strtoull(digits, NULL, 16) | 1;
}

static kl_err submit(judge *j, held_question *h, kl_error *e) {
    const bool keeps = kl_executor_ops_of(j->executor)->keeps;
    bool found = false;
    if (keeps && h->tenant.len) h->job.opts.seed = seed_of_tenant(h);
    kl_err err = kl_executor_submit(h->id, j->executor, h->arena, &h->job, e);
    if (err) return err;
    journal_key(h);
    err = kli_verdicts_find(&h->verdict, &found, j->store, h->arena, h->key, e);
    if (err) return err;
    h->submitted = true;
    h->journaled = found && (keeps || kli_verdicts_answer(&h->verdict, h->job.task, &h->job.opts));
    return h->journaled ? kl_executor_cancel(j->executor, h->arena, h->id, e) : KL_OK;
}

/* A busy minute is no property of a kernel: one that did not settle is measured once more. */
static bool once_more(const judge *j, const held_question *h) {
    return h->verdict.outcome == KL_OUTCOME_UNSTABLE && h->measured < 2 && !h->job.opts.quick &&
           !kl_executor_ops_of(j->executor)->keeps;
}

static kl_err measure_question(judge *j, held_question *h, kl_error *e) {
    kl_err err = kl_executor_poll(&h->verdict, j->executor, h->arena, h->id, e);
    h->measured++;
    while (!err && once_more(j, h)) {
        err = kl_executor_submit(h->id, j->executor, h->arena, &h->job, e);
        if (!err) err = kl_executor_poll(&h->verdict, j->executor, h->arena, h->id, e);
        h->measured++;
    }
    return err;
}

/* One look at a question; KL_PENDING: others are at it. */
static kl_err look_at(judge *j, held_question *h, kl_error *e) {
    kl_error refusal = {0};
    kl_err err = h->job.task ? KL_OK : load_question(j, h, &refusal, e);
    if (err) return err;
    if (!h->job.kernel) return refuse_question(j, h, &refusal, e);
    if (!h->submitted) err = submit(j, h, e);
    if (!err && !h->journaled) err = measure_question(j, h, e);
    return err ? err : keep_and_say(j, h, e);
}

static void let_go(judge *j, int i) {
    held_question *h = j->held[i];
    j->held[i] = j->held[--j->n_held];
    json_decref(h->line);
    kl_arena_free(h->arena);
    free(h);
}

static void look_at_all(judge *j) {
    for (int i = j->n_held - 1; i >= 0; i--) {
        kl_error e = {0};
        const kl_err err = look_at(j, j->held[i], &e);
        if (err == KL_PENDING) continue;
        if (err) say_error(j->held[i], &e);
        let_go(j, i);
    }
}

/* ---- lines ------------------------------------------------------------------------------ */

static kl_err hold_line(judge *j, kl_str line, kl_error *e) {
    held_question *h = calloc(1, sizeof *h);
    if (!h) kl_oom(sizeof *h);
    if (j->n_tasks == MOST_TASKS && !j->n_held) forget_tasks(j);
    h->arena = kl_arena_new();
    j->held[j->n_held++] = h;
    return read_question(h, kl_arena_copy(h->arena, line), e);
}

static kl_err take_questions(judge *j, kl_error *e) {
    kl_err err = KL_OK;
    const char *end;
    while (!err && j->n_held < j->window && (j->n_tasks < MOST_TASKS || !j->n_held) &&
           j->from.len && (end = memchr(j->from.ptr, '\n', j->from.len))) {
        const size_t n = (size_t)(end - j->from.ptr);
        err = hold_line(j, (kl_str){j->from.ptr, n}, e);
        j->from.len -= n + 1;
        memmove(j->from.ptr, end + 1, j->from.len + 1);
    }
    return err;
}

/* False at the end of stdin.  Waits for a line only where there is nothing else to do. */
static bool read_more(judge *j) {
    static char bytes[65536];
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&in, 1, j->n_held ? LOOK_MS : -1) <= 0) return !kli_interrupted();
    const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n > 0) kl_buf_add(&j->from, (kl_str){bytes, (size_t)n});
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

static kl_err judge_all(judge *j, kl_error *e) {
    kl_err err = KL_OK;
    while (!err && !kli_interrupted() && read_more(j)) {
        if (j->from.len > KLI_REWARD_LINE * (size_t)j->window)
            return kl_fail(e, KL_ELIMIT, "judge", "a line without an end");
        do {
            err = take_questions(j, e);
            if (!err) look_at_all(j);
        } while (!err && !j->n_held && j->from.len && memchr(j->from.ptr, '\n', j->from.len));
    }
    while (j->n_held) let_go(j, 0);
    return err;
}

kl_err kli_reward_judge(const kli_reward_opts *o, kl_error *e) {
    judge *j = calloc(1, sizeof *j);
    if (!j) kl_oom(sizeof *j);
    j->arena = kl_arena_new();
    j->require_assurance = o->require_assurance;
    kl_err err = kl_store_open(&j->store, o->store, e);
    if (!err) err = kl_executor_open(&j->executor, o->executor, e);
    if (!err) {
        const bool waits = kl_executor_ops_of(j->executor)->keeps;
        j->window = waits ? KLI_REWARD_WINDOW : 1;
        if (!waits) (void)!kl_noise_recall(&j->noise, j->store, j->arena, kl_ignored());
        err = judge_all(j, e);
    }
    forget_tasks(j);
    kl_executor_close(j->executor);
    kl_store_close(j->store);
    kl_buf_fini(&j->from);
    kl_arena_free(j->arena);
    free(j);
    return err;
}
