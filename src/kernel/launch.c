/* launch.c - launch directives become grids and argument values.
 *
 * Limits that every device of a surface shares are checked always; what differs (threads of a
 * block, shared memory) is checked when the device said so.  SPDX-License-Identifier: Apache-2.0 */
#include "kernel_impl.h"

#include <float.h>
#include <string.h>

/* ---- arguments --------------------------------------------------------------------------- */

kl_value *kli_take_args(kl_plan *p, kl_plan_launch *l, uint32_t n) {
    KL_ASSERT(p->n_args <= KL_MAX_PLAN_ARGS);
    if (n > KL_MAX_ARGS || n > KL_MAX_PLAN_ARGS - p->n_args) return NULL;
    l->first_arg = p->n_args, l->n_args = n;
    p->n_args += n;
    return p->args + l->first_arg;
}

static kl_err scalar_argument(kli_planner *p, const kl_arg *arg, int tensor, kl_value *out) {
    double value = p->workload->scalars[tensor];
    out->kind = KL_VALUE_SCALAR;
    out->index = (uint32_t)tensor;
    out->f = value;
    if (kl_dtype_is_float(p->workload->dtypes[tensor])) return KL_OK;
    if (!(value > -0x1p63 && value < 0x1p63))
        return kli_plan_fail(p, KL_EINVAL, arg->expr.offset,
                             "scalar input is %g, which is not an integer", value);
    out->i = (int64_t)value;
    return KL_OK;
}

static kl_err int32_argument(kli_planner *p, const kl_arg *arg, int64_t value, kl_value *out) {
    out->kind = KL_VALUE_I32;
    out->i = value;
    if (value >= INT32_MIN && value <= INT32_MAX) return KL_OK;
    kli_plan_fail(p, KL_EINVAL, arg->expr.offset, "%lld does not fit a 32-bit integer",
                  (long long)value);
    int n = arg->expr.text.len < 80 ? (int)arg->expr.text.len : 80;
    return kl_hint(p->error, "pass it as i64(%.*s) and make the function's parameter 64 bits wide",
                   n, arg->expr.text.ptr);
}

/* A NAME is, in this order: a tensor or a buffer, a tensormap, an axis, param, let or device
 * constant. */
static kl_err named_argument(kli_planner *p, const kl_arg *arg, kl_value *out) {
    kl_str name = arg->expr.text;
    int i = kl_task_tensor(p->task, name);
    if (i >= 0 && p->task->tensors[i].is_scalar) return scalar_argument(p, arg, i, out);
    if (i >= 0) return *out = (kl_value){.kind = KL_VALUE_TENSOR, .index = (uint32_t)i}, KL_OK;
    if ((i = kli_buffer_index(p->kernel, name)) >= 0)
        return *out = (kl_value){.kind = KL_VALUE_BUFFER, .index = (uint32_t)i}, KL_OK;
    if ((i = kli_tensormap_index(p->kernel, name)) >= 0)
        return *out = (kl_value){.kind = KL_VALUE_TENSORMAP, .index = (uint32_t)i}, KL_OK;
    int64_t value;
    if ((i = kli_let_index(p->kernel, name)) >= 0 && p->kernel->lets[i].real) {
        const bool wide = p->kernel->lets[i].type == KL_F64;
        return *out = (kl_value){.kind = wide ? KL_VALUE_F64 : KL_VALUE_F32, .f = p->reals[i]},
               KL_OK;
    }
    if (!kli_value_of(p, name, &value)) return kli_unknown_name(p, name, arg->expr.offset, true);
    return int32_argument(p, arg, value, out);
}

static kl_err real_argument(kli_planner *p, const kl_arg *arg, kl_value *out) {
    kl_str text = arg->expr.text;
    out->kind = arg->kind == KL_ARG_F32 ? KL_VALUE_F32 : KL_VALUE_F64;
    if (kli_parse_real(&out->f, text)) return KL_OK;
    if (kli_real_of(p, text, &out->f)) return KL_OK;
    return kli_unknown_name(p, text, arg->expr.offset, false);
}

/* Nothing is passed; the index is the element type, for the compiler. */
static kl_err type_argument(kli_planner *p, const kl_arg *arg, kl_value *out) {
    const int tensor = kl_task_tensor(p->task, arg->expr.text);
    const int buffer = kli_buffer_index(p->kernel, arg->expr.text);
    if (tensor < 0 && buffer < 0)
        return kli_unknown_name(p, arg->expr.text, arg->expr.offset, true);
    const kl_dtype type =
        tensor >= 0 ? p->workload->dtypes[tensor] : p->kernel->buffers[buffer].dtype;
    *out = (kl_value){.kind = KL_VALUE_NONE, .index = (uint32_t)type};
    return KL_OK;
}

static kl_err plan_argument(kli_planner *p, const kl_arg *arg, kl_value *out) {
    kl_err err = KL_OK;
    switch (arg->kind) {
    case KL_ARG_NAME:
        return named_argument(p, arg, out);
    case KL_ARG_F32:
    case KL_ARG_F64:
        return real_argument(p, arg, out);
    case KL_ARG_I64:
        out->kind = KL_VALUE_I64;
        return kli_eval(p, &out->i, &arg->expr);
    case KL_ARG_LOCAL:
        out->kind = KL_VALUE_LOCAL;
        return kli_eval_range(p, &out->i, &arg->expr, "local memory", 1,
                              p->limits.smem_max ? p->limits.smem_max : INT32_MAX);
    case KL_ARG_TYPE:
        return type_argument(p, arg, out);
    case KL_ARG_WORD:
        return out->kind = KL_VALUE_NONE, KL_OK;
    case KL_ARG_EXPR: {
        int64_t value = 0;
        if ((err = kli_eval(p, &value, &arg->expr)) != KL_OK) return err;
        return int32_argument(p, arg, value, out);
    }
    }
    return err;
}

/* ---- sizes ------------------------------------------------------------------------------- */

const int64_t kli_cuda_grid_most[3] = {INT32_MAX, 65535, 65535};

const kl_device_limits *kli_plan_limits(const kli_planner *p) { return &p->limits; }

kl_err kli_plan_sizes(kli_planner *p, const kl_launch *l, kl_clause clause, const char *what,
                      const int64_t most[3], uint32_t absent, uint32_t out[3]) {
    for (int d = 0; d < 3; d++) {
        KL_ASSERT(most[d] >= 1 && most[d] <= UINT32_MAX);
        int64_t value = absent;
        if (d < l->n_clauses[clause]) {
            kl_err err = kli_eval_range(p, &value, &l->clauses[clause][d], what, 1, most[d]);
            if (err) return err;
        }
        out[d] = (uint32_t)value;
    }
    return KL_OK;
}

kl_err kli_plan_one(kli_planner *p, const kl_launch *l, kl_clause clause, const char *what,
                    int64_t low, int64_t high, int64_t absent, uint32_t *out) {
    int64_t value = absent;
    kl_err err = KL_OK;
    KL_ASSERT(low >= 0 && high <= UINT32_MAX && absent >= 0);
    if (l->n_clauses[clause])
        err = kli_eval_range(p, &value, &l->clauses[clause][0], what, low, high);
    *out = (uint32_t)value;
    return err;
}

kl_err kli_plan_threads(kli_planner *p, const kl_launch *l, kl_clause clause,
                        const uint32_t size[3], int64_t most, const char *what, const char *of) {
    double n = (double)size[0] * size[1] * size[2];
    if (!most || n <= (double)most) return KL_OK;
    kl_err err =
        kli_plan_fail(p, KL_EINVAL, l->clauses[clause][0].offset,
                      "%s of %.0f %s; at most %lld are possible", what, n, of, (long long)most);
    kl_hint(p->error, "here it is %u x %u x %u", size[0], size[1], size[2]);
    return err;
}

kl_err kli_plan_divides(kli_planner *p, const kl_launch *l, kl_clause part,
                        const uint32_t whole_size[3], const uint32_t part_size[3],
                        const char *whole_name, const char *part_name) {
    for (int d = 0; d < l->n_clauses[part]; d++) {
        KL_ASSERT(part_size[d] > 0);
        if (whole_size[d] % part_size[d] == 0) continue;
        kl_err err = kli_plan_fail(p, KL_EINVAL, l->clauses[part][d].offset,
                                   "%s %u is not a multiple of %s %u (dimension %d)", whole_name,
                                   whole_size[d], part_name, part_size[d], d + 1);
        kl_hint(p->error, "round it up, cdiv(n, %u) * %u, and let the extra ones do nothing",
                part_size[d], part_size[d]);
        return err;
    }
    return KL_OK;
}

/* Local arguments share one memory. */
static kl_err check_local(kli_planner *p, const kl_launch *l, const kl_plan_launch *out) {
    int64_t total = 0; /* n_args times INT32_MAX fits */
    const kl_value *args = kli_launch_args(p->plan, out);
    for (uint32_t i = 0; i < out->n_args; i++)
        if (args[i].kind == KL_VALUE_LOCAL) total += args[i].i;
    if (!p->limits.smem_max || total <= p->limits.smem_max) return KL_OK;
    return kli_plan_fail(p, KL_EINVAL, l->offset,
                         "local arguments need %lld bytes together; the device has %lld",
                         (long long)total, (long long)p->limits.smem_max);
}

static kl_err plan_launch(kli_planner *p, const kl_launch *l, kl_plan_launch *out) {
    kl_value *args = kli_take_args(p->plan, out, (uint32_t)l->n_args);
    KL_ASSERT(l->entry.len < KL_MAX_NAME && args); /* the directives have the same bounds */
    memcpy(out->entry, l->entry.ptr, l->entry.len);
    const kl_surface *s = p->kernel->surface;
    for (int d = 0; d < 3 && !s->shape; d++) out->grid[d] = out->block[d] = out->cluster[d] = 1;
    kl_err err = s->shape ? s->shape(p, l, out) : KL_OK;
    for (int i = 0; i < l->n_args && !err; i++) {
        err = plan_argument(p, &l->args[i], &args[i]);
        args[i].joined = l->args[i].joined;
    }
    return err ? err : check_local(p, l, out);
}

kl_err kli_plan_launches(kli_planner *p) {
    kl_err err = KL_OK;
    p->plan->n_launches = (uint32_t)p->kernel->n_launches;
    for (int i = 0; i < p->kernel->n_launches && !err; i++)
        err = plan_launch(p, &p->kernel->launches[i], &p->plan->launches[i]);
    return err;
}
