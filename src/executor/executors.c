/* executors.c - the table of executors, and one that is open.  SPDX-License-Identifier: Apache-2.0
 */
#include "executors.h"
#include "base/log.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXECUTORS_POLL_NS                                                                          \
    300000000 /* a person does not notice, and a shared file system does not suffer */

static const kl_executor_ops *const EXECUTORS[] = {&kli_executor_local, &kli_executor_spool,
                                                   &kli_executor_slurm, &kli_executor_ssh};

struct kl_executor {
    const kl_executor_ops *ops;
    kl_arena *arena;
    void *self;
};

const kl_executor_ops *kl_executor_each(int i) {
    return i >= 0 && i < (int)KL_COUNT(EXECUTORS) ? EXECUTORS[i] : NULL;
}

static const kl_executor_ops *named(kl_str name) {
    for (size_t i = 0; i < KL_COUNT(EXECUTORS); i++)
        if (kl_str_eq(name, kl_str_of(EXECUTORS[i]->name))) return EXECUTORS[i];
    return NULL;
}

static kl_err executors_unknown(const char *spec, kl_error *e) {
    kl_buf all = {0};
    for (size_t i = 0; i < KL_COUNT(EXECUTORS); i++)
        kl_buf_printf(&all, "%s%s", i ? ", " : "", EXECUTORS[i]->spec);
    kl_fail(e, KL_EINVAL, NULL, "no executor '%.80s'; there are: %s", spec, all.ptr);
    kl_buf_fini(&all);
    return KL_EINVAL;
}

kl_err kl_executor_open(kl_executor **out, const char *spec, kl_error *e) {
    if (!spec) spec = "local";
    const kl_str name = {spec, strcspn(spec, ":")};
    const kl_executor_ops *ops = named(name);
    *out = NULL;
    return ops ? kl_executor_open_ops(out, ops, spec[name.len] ? spec + name.len + 1 : "", e)
               : executors_unknown(spec, e);
}

kl_err kl_executor_open_ops(kl_executor **out, const kl_executor_ops *ops, const char *rest,
                            kl_error *e) {
    KL_ASSERT(ops->open && ops->key && ops->submit && ops->poll);
    kl_executor *x = calloc(1, sizeof *x);
    if (!x) kl_oom(sizeof *x);
    *x = (kl_executor){.ops = ops, .arena = kl_arena_new()};
    *out = NULL;
    const kl_err err = ops->open(&x->self, x->arena, rest, e);
    if (err) {
        kl_arena_free(x->arena);
        free(x);
        return err;
    }
    *out = x;
    return KL_OK;
}

void kl_executor_close(kl_executor *x) {
    if (!x) return;
    if (x->ops->close) x->ops->close(x->self);
    kl_arena_free(x->arena);
    free(x);
}

const kl_executor_ops *kl_executor_ops_of(const kl_executor *x) { return x->ops; }

kl_err kl_executor_key(char key[65], kl_executor *x, kl_arena *a, const kl_gate_job *j,
                       kl_error *e) {
    KL_ASSERT(j->task && j->kernel);
    return x->ops->key(key, x->self, a, j, e);
}

kl_err kl_executor_submit(char id[65], kl_executor *x, kl_arena *a, const kl_gate_job *j,
                          kl_error *e) {
    const kl_err err = x->ops->submit(id, x->self, a, j, e);
    KL_ASSERT(err || strlen(id) == 64); /* it names the job, and its verdict */
    return err;
}

kl_err kl_executor_poll(kl_verdict *out, kl_executor *x, kl_arena *a, const char *id, kl_error *e) {
    return x->ops->poll(out, x->self, a, id, e);
}

kl_err kl_executor_cancel(kl_executor *x, kl_arena *a, const char *id, kl_error *e) {
    return x->ops->cancel(x->self, a, id, e);
}

int kl_executor_capacity(kl_executor *x) {
    const int jobs = x->ops->capacity(x->self);
    KL_ASSERT(jobs >= 1);
    return jobs;
}

kl_str kl_executor_describe(kl_executor *x, kl_arena *a) { return x->ops->describe(x->self, a); }

/* One look at where it stands, then a rest. */
static kl_err executors_rest(kl_executor *x, const char *id, kl_error *e) {
    kl_arena *scratch = kl_arena_new();
    kli_base_progress("waiting for job %.12s: %.*s", id,
                      KL_STR_ARG(kl_executor_describe(x, scratch)));
    kl_arena_free(scratch);
    if (kli_interrupted())
        return kl_fail(e, KL_EINTR, x->ops->name, "interrupted; the job stays where it is");
    nanosleep(&(struct timespec){.tv_nsec = EXECUTORS_POLL_NS}, NULL);
    return KL_OK;
}

kl_err kl_executor_wait(kl_verdict *out, kl_executor *x, kl_arena *a, const char *id, kl_error *e) {
    kl_err err;
    while ((err = kl_executor_poll(out, x, a, id, e)) == KL_PENDING)
        if ((err = executors_rest(x, id, e))) return err;
    return err;
}
