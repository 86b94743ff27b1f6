/* executor.h - how a kernel gets judged: by the gate of this process, or by workers that answer
 * later.
 *
 * Owns the way to a verdict, and opens a gate where one is needed.  Never reads the journal, and
 * never decides whether a verdict will do: run.h does both.  An executor is a row of
 * src/executor/executors.c: local, spool. SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_EXECUTOR_H
#define KLINEAGE_EXECUTOR_H

#include <klineage/gate.h>

KL_API_BEGIN

typedef struct {
    const char *name; /* "spool" */
    const char *spec; /* "spool:DIR": how kl_executor_open is told */
    const char *doc;
    /* A job keeps its verdict and gives it again: another measurement needs another seed.  Its key
     * names no device, so no other verdict answers it.  False: every submit measures anew, under a
     * key that names the device. */
    bool keeps;
    /* `rest` is what follows the colon.  `a` lives until close. */
    kl_err (*open)(void **self, kl_arena *a, const char *rest, kl_error *e);
    void (*close)(void *self); /* NULL: nothing beyond the arena.  Jobs that are not done stay where
                                  others work on them */
    /* What is asked, as a hash; the same question has the same key in every process.  Errors:
     * KL_ENOENT (no such workload), KL_ENODEV. */
    kl_err (*key)(char key[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e);
    /* Hand a job in, without waiting for it.  A job that is already there stays one job.  `id`
     * names it from here on, and is the key that its verdict is kept under.  What `j` points to
     * stays until poll where that never says KL_PENDING; who may say so takes what it needs here.
     * Errors: KL_EINVAL (a job that cannot be carried), KL_EIO. */
    kl_err (*submit)(char id[65], void *self, kl_arena *a, const kl_gate_job *j, kl_error *e);
    /* The verdict of a job; text in `a`.  KL_PENDING: not there yet.  May block as long as a gate
     * takes.  Any other error ends the job: those of kl_gate_run, KL_ENOENT (never submitted). */
    kl_err (*poll)(kl_verdict *out, void *self, kl_arena *a, const char *id, kl_error *e);
    /* The verdict is not wanted any more: a job that was not begun goes, one that was begun or done
     * stays as it is. */
    kl_err (*cancel)(void *self, kl_arena *a, const char *id, kl_error *e);
    /* Jobs that it pays to have submitted at a time: 1 where they are judged one after the other,
     * INT_MAX where that is unknown.  More than 1: what may be asked next is submitted ahead. */
    int (*capacity)(void *self);
    /* For people: "here", "spool /mnt/s: 2 wait, 1 taken, 5 done". */
    kl_str (*describe)(void *self, kl_arena *a);
} kl_executor_ops;

const kl_executor_ops *kl_executor_each(int i); /* NULL past the end */

typedef struct kl_executor kl_executor;
/* `spec`: "local" (also NULL), "spool:DIR".  Errors: KL_EINVAL (no such executor), those of `open`.
 */
KL_MUST_USE kl_err kl_executor_open(kl_executor **out, const char *spec, kl_error *e);
/* One that is in no table: of a test, or of a program that brings its own. */
KL_MUST_USE kl_err kl_executor_open_ops(kl_executor **out, const kl_executor_ops *ops,
                                        const char *rest, kl_error *e);
void kl_executor_close(kl_executor *x); /* accepts NULL */
const kl_executor_ops *kl_executor_ops_of(const kl_executor *x);

KL_MUST_USE kl_err kl_executor_key(char key[65], kl_executor *x, kl_arena *a, const kl_gate_job *j,
                                   kl_error *e);
KL_MUST_USE kl_err kl_executor_submit(char id[65], kl_executor *x, kl_arena *a,
                                      const kl_gate_job *j, kl_error *e);
KL_MUST_USE kl_err kl_executor_poll(kl_verdict *out, kl_executor *x, kl_arena *a, const char *id,
                                    kl_error *e);
KL_MUST_USE kl_err kl_executor_cancel(kl_executor *x, kl_arena *a, const char *id, kl_error *e);
int kl_executor_capacity(kl_executor *x);
kl_str kl_executor_describe(kl_executor *x, kl_arena *a);
/* Poll until there is an answer, and show what is waited for.  Errors: as poll, KL_EINTR. */
KL_MUST_USE kl_err kl_executor_wait(kl_verdict *out, kl_executor *x, kl_arena *a, const char *id,
                                    kl_error *e);

/* ---- spool: a folder that carries jobs to a host without a network ----------------------- */

/* What job.json says. */
typedef struct {
#define KL_DEF_OPPONENT KL_MEMBER
#include <klineage/executor.def>
} kl_opponent;
typedef struct {
#define KL_DEF_JOB KL_MEMBER
#include <klineage/executor.def>
} kl_job;
extern const kl_record KL_JOB;

/* Put one job (task, kernel, options, `against`, compiled artefacts) into DIR/todo.  Idempotent:
 * what waits, is worked on or is done is left alone.  Errors: KL_EINVAL (a task that is no folder;
 * `against` of another surface). */
KL_MUST_USE kl_err kl_spool_put(char id[65], const char *dir, kl_arena *a, const kl_gate_job *j,
                                kl_error *e);
/* The verdict of a job: KL_PENDING while it is not there. */
KL_MUST_USE kl_err kl_spool_get(kl_verdict *out, kl_arena *a, const char *dir, const char *id,
                                kl_error *e);
/* Do every job in DIR by executor `x`, taking each by an atomic rename so that several workers may
 * share the folder; jobs of dead workers are taken back, and a time that does not settle is taken
 * once more.  Returns when nothing is left.  `done`, `failed`: counts. */
KL_MUST_USE kl_err kl_spool_work(const char *dir, kl_executor *x, int *done, int *failed,
                                 kl_error *e);

KL_API_END
#endif
