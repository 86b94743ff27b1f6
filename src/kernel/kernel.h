/* kernel.h - the parsed kernel and its plan: klineage/kernel.h with the bodies of its handles.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KL_KERNEL_KERNEL_H
#define KL_KERNEL_KERNEL_H

#include "kernel/surface.h"
#include "task/task.h"

/* Text of an expression with its place in the source, for carets. */
typedef struct {
    kl_str text;
    size_t offset;
} kl_expr;

typedef struct {
    kl_str name;
    int64_t value;      /* the chosen value */
    int64_t values[32]; /* values worth trying; the declared default comes first */
    int n_values;
    size_t offset;
} kl_param;

typedef struct {
    kl_str name;
    kl_expr expr;
    bool real; /* of numbers, not of integers; `type`: what it is passed as */
    kl_dtype type;
} kl_let;

typedef struct {
    kl_str name;
    kl_dtype dtype;
    kl_expr dims[KL_MAX_DIMS];
    int ndim;
    bool zero;
    size_t offset;
} kl_buffer;

typedef enum {
    KL_OPT_BOX,
    KL_OPT_SWIZZLE,
    KL_OPT_DIMS,
    KL_OPT_STRIDES,
    KL_OPT_INTERLEAVE,
    KL_OPT_L2,
    KL_OPT_COUNT
} kl_tensormap_option;

typedef struct {
    kl_str name, tensor;              /* tensor or buffer that it describes */
    kl_expr options[KL_OPT_COUNT][5]; /* innermost first; n 0 when absent */
    int n_options[KL_OPT_COUNT];
    size_t offset;
} kl_tensormap;

typedef enum {
    KL_ARG_NAME,
    KL_ARG_EXPR,
    KL_ARG_I64,
    KL_ARG_F32,
    KL_ARG_F64,
    KL_ARG_LOCAL,
    KL_ARG_TYPE, /* dtype(TENSOR): its element type, for a compiler */
    KL_ARG_WORD  /* None, True, False, 'text': for a compiler, never passed to a kernel */
} kl_arg_kind;

typedef struct {
    kl_arg_kind kind;
    kl_str name;  /* the parameter that it is for; empty: by its place */
    bool joined;  /* lies behind the argument before it, in one parameter */
    kl_expr expr; /* the text between the parentheses, or the whole argument */
} kl_arg;

typedef enum {
    KL_CLAUSE_GRID,
    KL_CLAUSE_BLOCK,
    KL_CLAUSE_CLUSTER,
    KL_CLAUSE_GLOBAL,
    KL_CLAUSE_LOCAL,
    KL_CLAUSE_SMEM,
    KL_CLAUSE_WARPS,
    KL_CLAUSE_STAGES,
    KL_CLAUSE_CTAS,
    KL_CLAUSE_MAXNREG,
    KL_CLAUSE_COUNT
} kl_clause;

struct kl_launch {
    kl_str entry;
    kl_expr clauses[KL_CLAUSE_COUNT][3];
    int n_clauses[KL_CLAUSE_COUNT];
    kl_arg *args; /* in the kernel's arena */
    int n_args;
    size_t offset;
};

struct kl_kernel {
    const kl_surface *surface;
    kl_str path;   /* for messages only */
    kl_str source; /* whole file, as read */
    kl_param params[KL_MAX_PARAMS];
    int n_params;
    kl_let lets[KL_MAX_LETS];
    int n_lets;
    kl_expr required[16];
    int n_required;
    kl_buffer buffers[KL_MAX_BUFFERS];
    int n_buffers;
    kl_tensormap tensormaps[KL_MAX_TENSORMAPS];
    int n_tensormaps;
    kl_launch launches[KL_MAX_LAUNCHES];
    int n_launches;
    kl_str flags[32];
    int n_flags;
    kl_expr threads; /* empty: 1 */
    bool nondeterministic;
    kl_dtype result;   /* oracles: dtype of float outputs (KL_F64 default); candidates: 0 */
    bool trusted;      /* part of a task: oracle or baseline */
    bool may_be_code;  /* the file may name a cubin in the place of its source */
    kl_str cubin;      /* a file beside this one; empty: what is compiled is the source */
    kl_str cubin_hash; /* its sha256 in hexadecimal digits */
    char hash[65];     /* identity: surface, source, flags, param values */
};

/* ---- plan: everything evaluated for one workload; what a worker is told ------------------ */

typedef enum {
    KL_VALUE_TENSOR,
    KL_VALUE_BUFFER,
    KL_VALUE_TENSORMAP,
    KL_VALUE_I32,
    KL_VALUE_I64,
    KL_VALUE_F32,
    KL_VALUE_F64,
    KL_VALUE_LOCAL,
    KL_VALUE_SCALAR,
    KL_VALUE_NONE /* its compiler folds it; no runner takes it */
} kl_value_kind;

/* kl_plan_tensor.role: who writes it, and when. */
typedef enum { KL_ROLE_INPUT, KL_ROLE_OUTPUT, KL_ROLE_MUTABLE, KL_ROLE_SCALAR } kl_tensor_role;

/* kl_plan and its parts, declared in plan.def. */
#define KL_DEF_STRUCT(name) typedef struct name {
#define KL_DEF_FIELD(type, member, dims) type member dims;
#define KL_DEF_END(name)                                                                           \
    }                                                                                              \
    name;
#include "kernel/plan.def"

#define KL_PLAN_MAGIC 0x4e4c504bu
#define KL_PLAN_VERSION 5u

/* The arguments of a launch of this plan, `n_args` of them. */
static inline const kl_value *kli_launch_args(const kl_plan *p, const kl_plan_launch *l) {
    KL_ASSERT(l->first_arg <= KL_MAX_PLAN_ARGS && l->n_args <= KL_MAX_PLAN_ARGS - l->first_arg);
    return p->args + l->first_arg;
}

/* Room for `n` arguments of a launch, behind those of the launches before; NULL: there is none. */
kl_value *kli_take_args(kl_plan *p, kl_plan_launch *l, uint32_t n);

/* Evaluate every expression of `k` for workload `w`.  A kernel whose `require` fails, or whose plan
 * passes a device limit, is KL_EINVAL with the directive's line and caret: the gate turns it into
 * outcome `refused`. */
KL_MUST_USE kl_err kli_kernel_plan(kl_plan *out, const kl_kernel *k, const kl_task *t,
                                   const kl_workload *w, const kl_device_limits *limits,
                                   kl_error *e);
/* A plan with what the compiler of some surfaces decided (artefact.completion,
 * docs/formats/completion.md): sizes of launches, the order of parameters, hidden buffers,
 * descriptors.  Empty: KL_OK, nothing changes.  Errors: KL_EPARSE, KL_EINVAL: it does not fit the
 * plan or the device, which is an outcome of the kernel. */
KL_MUST_USE kl_err kli_plan_complete(kl_plan *plan, kl_str completion, const kl_kernel *k,
                                     const kl_task *t, const kl_workload *w,
                                     const kl_device_limits *limits, kl_error *e);
/* What a just-in-time compiler specializes on, a word for each argument: "ptr" (all of ours are
 * aligned), "map" a descriptor, "none" what is not passed, "one" the integer 1, "i32/16" "i64/16"
 * one that 16 divides, "i32" "i64" another, else the type; launches between ';'.  In the arena. */
kl_str kli_plan_classes(kl_arena *a, const kl_plan *plan);
/* The compiler's -D flags for this kernel and workload (params, const axes, dtypes, tensor types),
 * NULL-terminated, in the arena. */
const char **kli_kernel_defines(kl_arena *a, const kl_kernel *k, const kl_task *t,
                                const kl_workload *w);

#endif
