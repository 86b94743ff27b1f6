/* task.h - what must be computed: a FlashInfer-Trace definition, its workloads, its oracle, its
 * baselines.
 *
 * Owns the parsed task.  Never runs anything: oracles and baselines are named here and run by the
 * gate in workers. Format: docs/formats/task.md; FlashInfer-Trace and SOL-ExecBench documents load
 * unchanged. SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_TASK_H
#define KLINEAGE_TASK_H

#include <klineage/base.h>
#include <klineage/limits.h>

KL_API_BEGIN

typedef enum { KL_ON_ANY, KL_ON_CPU, KL_ON_GPU } kl_host_kind;

/* A task, and one of its shapes with the distributions and tolerances that hold there; both in the
 * arena that the task was loaded into. */
typedef struct kl_task kl_task;
typedef struct kl_workload kl_workload;

/* Load a task folder, or a FlashInfer-Trace definition file (its workloads are looked for in the
 * data set's layout). Everything lives in the arena.  Errors: KL_ENOENT, KL_EPARSE (line and
 * caret), KL_EINVAL. */
KL_MUST_USE kl_err kl_task_load(kl_task **out, kl_arena *a, const char *path, kl_error *e);
/* Find a task by name or path: a path as it is, else $KLINEAGE_TASKS/NAME, else tasks/NAME above
 * the program or here. */
KL_MUST_USE kl_err kl_task_find(kl_str *path, kl_arena *a, const char *name_or_path, kl_error *e);

kl_str kl_task_name(const kl_task *t);
const char *kl_task_hash(const kl_task *t); /* its version: sha256 over definition, workloads,
                                               oracles and baselines */
/* The i-th shape, in the order of the files; NULL past the last. */
const kl_workload *kl_task_workload_each(const kl_task *t, int i);
kl_str kl_workload_label(const kl_workload *w);
int kl_task_tensor(const kl_task *t, kl_str name); /* index or -1 */
int kl_task_axis(const kl_task *t, kl_str name);   /* index or -1 */
/* By label or uuid, fitting `on`; an empty label means the first real shape (not tiny, not hidden).
 * NULL when none. */
const kl_workload *kl_task_workload(const kl_task *t, kl_str label, kl_host_kind on);
/* Is it a shape for this host? */
bool kl_workload_fits(const kl_workload *w, kl_host_kind on);
/* A synthetic workload for axis values given by the user ("M=64,N=65"), based on `base`.  Errors:
 * KL_EINVAL. */
KL_MUST_USE kl_err kl_workload_with_axes(kl_workload **out, kl_arena *a, const kl_task *t,
                                         const kl_workload *base, kl_str assignments, kl_error *e);
/* What `--workload` means: a label, a uuid, or axis values over the first real shape that fits
 * `on`; NULL: that shape.  Borrowed from the task, or made in `a`.  Errors: KL_ENOENT, KL_EINVAL.
 */
KL_MUST_USE kl_err kl_workload_wanted(const kl_workload **out, kl_arena *a, const kl_task *t,
                                      const char *wanted, kl_host_kind on, kl_error *e);

/* Resolved sizes of one tensor for one workload. */
typedef struct {
    int ndim;
    int64_t dims[KL_MAX_DIMS];
    int64_t elems;
    size_t bytes;
} kl_shape;

/* Errors: KL_EINVAL for an axis below 1, an overflow or a tensor above KL_MAX_TENSOR_BYTES. */
KL_MUST_USE kl_err kl_task_shape(kl_shape *out, const kl_task *t, const kl_workload *w, int tensor,
                                 kl_error *e);
/* flops of one run; 0 when the task does not say. Bytes: every input read once and every output
 * written once. */
KL_MUST_USE kl_err kl_task_work(double *flops, double *bytes, const kl_task *t,
                                const kl_workload *w, kl_error *e);

/* Fill `data` (the tensor's bytes) with input `tensor` of workload `w`, drawn from `seed`; `scale`
 * multiplies inputs drawn `normal` (1 normally; the stress scales otherwise).  Values depend on
 * (seed, tensor name, index) alone.  Uses `threads` threads.  Errors: KL_EIO for a safetensors
 * file, KL_EINVAL. */
KL_MUST_USE kl_err kl_task_fill(void *data, const kl_task *t, const kl_workload *w, int tensor,
                                uint64_t seed, double scale, int threads, kl_error *e);

/* Integer expressions over axes ("2*M*N*K", "cdiv(S, 64)"): grammar in docs/formats/kernel.md.
 * `lookup` returns false for an unknown name.  Checked 64-bit.  Errors: KL_EPARSE, KL_EINVAL with a
 * caret into `expr`. */
typedef bool kl_lookup(void *ctx, kl_str name, int64_t *value);
KL_MUST_USE kl_err kl_expr_eval(int64_t *out, kl_str expr, kl_lookup *lookup, void *ctx,
                                kl_error *e);

KL_API_END
#endif
