/* simulated.h - an executor for tests: 64 workers that are not there, and their queue.
 *
 * Every poll is a moment: each job that runs comes one moment nearer to its end, after one to four
 * of them, and free workers take what waits.  Verdicts are real: the gate of this process gives one
 * per question, whatever its seed. Only tests include it.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_EXECUTOR_SIMULATED_H
#define KL_EXECUTOR_SIMULATED_H
#include "kernel/kernel.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include <klineage/executor.h>
#include <string.h>

enum { SIMULATED_WORKERS = 64 };

typedef enum { SIMULATED_WAITS, SIMULATED_RUNS, SIMULATED_DONE } simulated_state;

typedef struct {
    char id[65]; /* empty: cancelled */
    simulated_state state;
    int moments; /* until it is done */
    kl_err err;
    kl_error error;
    kl_str verdict; /* JSON */
} simulated_job;

typedef struct {
    char key[65];
    kl_str verdict;
} simulated_answer;

typedef struct {
    kl_arena *arena;
    kl_executor *gate; /* who gives the verdicts */
    simulated_job *jobs;
    simulated_answer *answers;
    size_t n, n_answers;
    int running, most_running;
} simulated_cluster;

static simulated_cluster *simulated_last; /* opened last, for a test to look into */

static inline kl_err simulated_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    simulated_cluster *c = KL_NEW(a, simulated_cluster);
    (void)rest;
    *c = (simulated_cluster){.arena = a};
    *self = simulated_last = c;
    return kl_executor_open(&c->gate, "local", e);
}

static inline void simulated_close(void *self) {
    kl_executor_close(((simulated_cluster *)self)->gate);
}

/* Like a spool's, the key names no device. */
static inline kl_err simulated_key(char key[65], void *self, kl_arena *a, const kl_gate_job *j,
                                   kl_error *e) {
    const kl_gate_opts *o = &j->opts;
    (void)self, (void)e;
    const kl_str text = kl_arena_printf(
        a, "%s %s %s %s %s %d %d %llu", j->task->hash, j->kernel->hash,
        o->workload ? o->workload : "", o->baseline ? o->baseline : "",
        o->against ? o->against->hash : "", o->check_only, o->quick, (unsigned long long)o->seed);
    memcpy(key, kli_hash_of(text).hex, 65);
    return KL_OK;
}

static inline simulated_job *simulated_find(simulated_cluster *c, const char *id) {
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->jobs[i].id, id) == 0) return &c->jobs[i];
    return NULL;
}

/* The gate's word on a question, asked once whatever the seed. */
static inline kl_err simulated_judge(kl_str *out, simulated_cluster *c, const kl_gate_job *j,
                                     kl_error *e) {
    kl_gate_job unseeded = *j;
    kl_verdict v;
    char key[65], id[65];
    unseeded.opts.seed = 0;
    kl_err err = simulated_key(key, c, c->arena, &unseeded, e);
    for (size_t i = 0; i < c->n_answers; i++)
        if (strcmp(c->answers[i].key, key) == 0) return *out = c->answers[i].verdict, KL_OK;
    if (!err) err = kl_executor_submit(id, c->gate, c->arena, j, e);
    if (!err) err = kl_executor_poll(&v, c->gate, c->arena, id, e);
    if (err) return err;
    json_t *o = kl_verdict_json(&v);
    *out = kli_json_dump(c->arena, o, false);
    json_decref(o);
    simulated_answer *kept = KL_PUSH(c->arena, c->answers, c->n_answers);
    memcpy(kept->key, key, sizeof kept->key);
    kept->verdict = *out;
    return KL_OK;
}

static inline kl_err simulated_submit(char id[65], void *self, kl_arena *a, const kl_gate_job *j,
                                      kl_error *e) {
    simulated_cluster *c = self;
    const kl_err err = simulated_key(id, self, a, j, e);
    if (err || simulated_find(c, id)) return err;
    simulated_job *job = KL_PUSH(c->arena, c->jobs, c->n);
    *job = (simulated_job){.moments = 1 + (int)(unsigned char)id[0] % 4};
    memcpy(job->id, id, sizeof job->id);
    job->err = simulated_judge(&job->verdict, c, j, &job->error);
    return KL_OK;
}

static inline void simulated_moment(simulated_cluster *c) {
    for (size_t i = 0; i < c->n; i++)
        if (c->jobs[i].state == SIMULATED_RUNS && --c->jobs[i].moments <= 0) {
            c->jobs[i].state = SIMULATED_DONE;
            c->running--;
        }
    for (size_t i = 0; i < c->n && c->running < SIMULATED_WORKERS; i++)
        if (c->jobs[i].id[0] && c->jobs[i].state == SIMULATED_WAITS) {
            c->jobs[i].state = SIMULATED_RUNS;
            c->running++;
        }
    if (c->running > c->most_running) c->most_running = c->running;
}

static inline kl_err simulated_poll(kl_verdict *out, void *self, kl_arena *a, const char *id,
                                    kl_error *e) {
    simulated_cluster *c = self;
    simulated_moment(c);
    const simulated_job *job = *id ? simulated_find(c, id) : NULL;
    if (!job) return kl_fail(e, KL_ENOENT, "simulated", "no job %.12s", id);
    if (job->state != SIMULATED_DONE)
        return kl_fail(e, KL_PENDING, "simulated", "job %.12s is not done yet", id);
    if (job->err) return *e = job->error, job->err;
    return kl_verdict_parse(out, a, job->verdict, KL_S("simulated"), e);
}

static inline kl_err simulated_cancel(void *self, kl_arena *a, const char *id, kl_error *e) {
    simulated_job *job = *id ? simulated_find(self, id) : NULL;
    (void)a, (void)e;
    if (job && job->state == SIMULATED_WAITS) job->id[0] = '\0';
    return KL_OK;
}

static inline int simulated_capacity(void *self) {
    (void)self;
    return SIMULATED_WORKERS;
}

static inline kl_str simulated_describe(void *self, kl_arena *a) {
    const simulated_cluster *c = self;
    return kl_arena_printf(a, "%d of %d workers busy", c->running, SIMULATED_WORKERS);
}

static const kl_executor_ops executor_simulated = {
    .name = "simulated",
    .spec = "simulated",
    .doc = "64 workers of a test",
    .keeps = true,
    .open = simulated_open,
    .close = simulated_close,
    .key = simulated_key,
    .submit = simulated_submit,
    .poll = simulated_poll,
    .cancel = simulated_cancel,
    .capacity = simulated_capacity,
    .describe = simulated_describe,
};

#endif
