/* local.c - executor local: the gate of this process.  A job is judged when it is polled, and then
 * forgotten.
 *
 * The gate is opened when a question first needs one: probing devices takes a while, and who only
 * looks up what is known asks no device for long.  SPDX-License-Identifier: Apache-2.0 */
#include "executors.h"
#include <string.h>

typedef struct {
    char id[65]; /* empty: a free place */
    kl_gate_job job;
} waiting_job;

typedef struct {
    kl_arena *arena;
    kl_gate *gate;
    waiting_job *jobs;
    size_t n;
} local_executor;

static kl_err local_open(void **self, kl_arena *a, const char *rest, kl_error *e) {
    local_executor *l = KL_NEW(a, local_executor);
    if (*rest)
        return kl_fail(e, KL_EINVAL, NULL,
                       "executor local takes nothing behind a colon, not '%.80s'", rest);
    *l = (local_executor){.arena = a};
    *self = l;
    return KL_OK;
}

static void local_close(void *self) {
    local_executor *l = self;
    kl_gate_close(l->gate);
}

static kl_err local_key(char key[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e) {
    local_executor *l = self;
    const kl_err err = l->gate ? KL_OK : kl_gate_open(&l->gate, e);
    return err ? err : kl_gate_key(key, l->gate, a, j->task, j->kernel, &j->opts, e);
}

static waiting_job *job_named(const local_executor *l, const char *id) {
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->jobs[i].id, id) == 0) return &l->jobs[i];
    return NULL;
}

static waiting_job *free_place(local_executor *l) {
    waiting_job *w = job_named(l, "");
    return w ? w : KL_PUSH(l->arena, l->jobs, l->n);
}

/* The same question with other demands (an assurance, say) has the same key: the last one counts.
 */
static kl_err local_submit(char id[65], void *self, kl_arena *a, const kl_gate_job *j,
                           kl_error *e) {
    local_executor *l = self;
    const kl_err err = local_key(id, self, a, j, e);
    if (err) return err;
    waiting_job *w = job_named(l, id);
    if (!w) w = free_place(l);
    KL_ASSERT(id[0]); /* an empty one is a free place */
    w->job = *j;
    memcpy(w->id, id, sizeof w->id);
    return KL_OK;
}

static kl_err local_poll(kl_verdict *out, void *self, kl_arena *a, const char *id, kl_error *e) {
    local_executor *l = self;
    waiting_job *w = *id ? job_named(l, id) : NULL;
    if (!w) return kl_fail(e, KL_ENOENT, "executor local", "no job %.12s was submitted", id);
    w->id[0] = '\0';
    return kl_gate_run(out, l->gate, a, w->job.task, w->job.kernel, &w->job.opts, e);
}

static kl_err local_cancel(void *self, kl_arena *a, const char *id, kl_error *e) {
    waiting_job *w = job_named(self, id);
    (void)a, (void)e;
    if (w) w->id[0] = '\0';
    return KL_OK;
}

static int local_capacity(void *self) {
    (void)self;
    return 1; /* gates of one machine take turns */
}

static kl_str local_describe(void *self, kl_arena *a) {
    (void)self, (void)a;
    return KL_S("here");
}

const kl_executor_ops kli_executor_local = {
    .name = "local",
    .spec = "local",
    .doc = "the gate of this process",
    .open = local_open,
    .close = local_close,
    .key = local_key,
    .submit = local_submit,
    .poll = local_poll,
    .cancel = local_cancel,
    .capacity = local_capacity,
    .describe = local_describe,
};
