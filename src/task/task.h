/* task.h - the parsed task: klineage/task.h with the bodies of its handles.
 *
 * Nobody outside the library sees them, so they may change.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_TASK_TASK_H
#define KL_TASK_TASK_H

#include <klineage/task.h>

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
    KL_DIST_CUSTOM /* only the task's Python `custom_inputs` makes it; kl_task_fill refuses */
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

typedef struct {
    kl_str name;
    kl_host_kind on;
    kl_str file; /* relative to the task folder */
} kl_baseline;

struct kl_workload {
    kl_str uuid, label; /* label falls back to the uuid */
    kl_host_kind on;
    bool hidden;
    int64_t axes[KL_MAX_AXES];       /* every axis of the task, resolved, in the task's order */
    kl_dtype dtypes[KL_MAX_TENSORS]; /* every tensor, overrides applied */
    kl_dist dists[KL_MAX_TENSORS];   /* every input, overrides applied */
    double scalars[KL_MAX_TENSORS];  /* value of each scalar input */
    kl_check checks[KL_MAX_TENSORS]; /* every output, SOL-ExecBench tolerance applied */
};

struct kl_task {
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
    bool wide_reference; /* the reference also runs in float64: it is as strong an oracle as any */
    kl_baseline baselines[16];
    int n_baselines;
    kl_workload *workloads;
    int n_workloads;
    kl_str tags;   /* of the definition, separated by blanks */
    char hash[65]; /* sha256 over definition, workloads, oracles and baselines: the task version */
};

#endif
