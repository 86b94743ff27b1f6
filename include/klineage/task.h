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

typedef enum { KL_AXIS_VAR, KL_AXIS_CONST, KL_AXIS_EXPR } kl_axis_kind;

typedef struct {
    kl_str name;
    kl_axis_kind kind;
    int64_t value; /* KL_AXIS_CONST only */
    kl_str expr;   /* KL_AXIS_EXPR only: integer expression over earlier axes */
} kl_axis;

typedef enum {
    KL_DIST_NORMAL,
    KL_DIST_UNIFORM,
    KL_DIST_UNIFORM_INT,
    KL_DIST_OFFSETS,
    KL_DIST_CONSTANT,
    KL_DIST_LOGSIGMOID,
    KL_DIST_SIGMOID,
    KL_DIST_BOOL,
    KL_DIST_DISTINCT,
    KL_DIST_TIES,
    KL_DIST_FILE,  /* safetensors input of a workload: `file` and `tensor_key` */
    KL_DIST_CUSTOM /* only the task's Python `custom_inputs` can make it; kl_task_fill refuses */
} kl_dist_kind;

/* How an input's values are drawn. */
typedef struct {
    kl_dist_kind kind;
    double scale;     /* multiplies; default 1 */
    double low, high; /* uniform; high exclusive */
    double value;     /* constant */
    double active;    /* share of the last axis that is nonzero; default 1 */
    bool l2norm;      /* normalise over the last axis, epsilon 1e-6 */
    bool even;        /* offsets: equal cuts */
    kl_str low_expr, high_expr,
        total; /* axis expressions for integer bounds and offsets; empty when numeric */
    kl_str file, tensor_key;
} kl_dist;

typedef enum { KL_CHECK_BUDGET, KL_CHECK_EXACT, KL_CHECK_TOPK } kl_check_kind;

/* How an output is judged. */
typedef struct {
    kl_check_kind kind;
    double rtol, atol;    /* element bound |out-ref| <= atol + rtol |ref|; 0,0: from the dtype
                             (docs/formats/task.md) */
    double matched;       /* share of elements that must meet it; default 1 */
    double budget;        /* relative RMS error <= budget x the baseline's own; default 4 */
    double max_error;     /* cap on the largest absolute error; 0: none */
    kl_str values, input; /* KL_CHECK_TOPK: names of the values output and of the ranked input */
} kl_check;

typedef struct {
    kl_str name;
    kl_dtype dtype;
    bool is_output;
    bool is_scalar;           /* shape null: passed by value */
    bool is_mutable;          /* input updated in place */
    int ndim;                 /* 0 for scalars and for shape [] */
    kl_str dims[KL_MAX_DIMS]; /* axis names or integers */
    kl_dist dist;             /* inputs */
    kl_check check;           /* outputs */
} kl_tensor;

typedef enum { KL_ON_ANY, KL_ON_CPU, KL_ON_GPU } kl_host_kind;

typedef struct {
    kl_str name;
    kl_host_kind on;
    kl_str file; /* relative to the task folder */
} kl_baseline;

typedef struct {
    kl_str uuid, label; /* label falls back to the uuid */
    kl_host_kind on;
    bool hidden;
    int64_t axes[KL_MAX_AXES];       /* every axis of the task, resolved, in the task's order */
    kl_dtype dtypes[KL_MAX_TENSORS]; /* every tensor, overrides applied */
    kl_dist dists[KL_MAX_TENSORS];   /* every input, overrides applied */
    double scalars[KL_MAX_TENSORS];  /* value of each scalar input */
    kl_check checks[KL_MAX_TENSORS]; /* every output, SOL-ExecBench tolerance applied */
} kl_workload;

typedef struct {
    kl_str dir; /* folder it came from; NUL-terminated */
    kl_str name, op_type, case_name, description;
    kl_axis axes[KL_MAX_AXES];
    int n_axes;
    kl_tensor tensors[KL_MAX_TENSORS]; /* inputs, then outputs, each in document order: the call
                                          interface */
    int n_inputs, n_tensors;
    kl_str constraints[KL_MAX_AXES];
    int n_constraints;
    kl_str flops;       /* expression; empty when unknown */
    kl_dtype precision; /* lowest internal precision allowed; 0: not stated */
    double stress[8];
    int n_stress;
    kl_str python_reference; /* Python source; may be empty */
    kl_str custom_inputs;    /* SOL-ExecBench custom_inputs_entrypoint; may be empty */
    kl_baseline baselines[16];
    int n_baselines;
    kl_workload *workloads;
    int n_workloads;
    kl_str tags;   /* of the definition, separated by blanks */
    char hash[65]; /* sha256 over definition, workloads, oracles and baselines: the task version */
} kl_task;

/* Load a task folder, or a FlashInfer-Trace definition file (its workloads are looked for in the
 * data set's layout). Everything lives in the arena.  Errors: KL_ENOENT, KL_EPARSE (line and
 * caret), KL_EINVAL. */
KL_MUST_USE kl_err kl_task_load(kl_task **out, kl_arena *a, const char *path, kl_error *e);
/* Find a task by name or path: a path as it is, else $KLINEAGE_TASKS/NAME, else tasks/NAME above
 * the program or here. */
KL_MUST_USE kl_err kl_task_find(kl_str *path, kl_arena *a, const char *name_or_path, kl_error *e);

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
