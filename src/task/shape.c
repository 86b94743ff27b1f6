/* shape.c - sizes: axes and expressions become dimensions, elements, bytes and operations, all of
 * them checked.
 *
 * A workload is settled once, after its var axes are known: derived axes, constraints, every
 * tensor's size, and whether each distribution can be drawn at that size.  What passes here cannot
 * overflow later. Deliberately not here: where the axes come from (workload.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "task_impl.h"

bool kli_axes_lookup(void *axes, kl_str name, int64_t *value) {
    const kli_axes *names = axes;
    const int index = kl_task_axis(names->task, name);
    if (index < 0 || (names->task->axes[index].kind == KL_AXIS_EXPR && index >= names->known))
        return false;
    *value = names->workload == NULL ? 1 : names->workload->axes[index];
    return true;
}

static kl_err eval(int64_t *out, kl_str expr, const char *what, const kl_task *t,
                   const kl_workload *w, int known, kl_error *e) {
    kli_axes axes = {t, w, known};
    kli_fault fault;
    if (kli_expr_run(out, expr, false, kli_axes_lookup, &axes, &fault) == KL_OK) return KL_OK;
    return kl_fail(e, fault.code, what, "%s in \"%.*s\"", fault.message, KL_STR_ARG(expr));
}

kl_err kli_dist_bound(int64_t *out, kl_str expr, double number, const kl_task *t,
                      const kl_workload *w, kl_error *e) {
    if (expr.len > 0) return eval(out, expr, "distribution", t, w, t->n_axes, e);
    *out = (int64_t)number; /* section.c keeps numeric bounds of integers within 2^53 */
    return KL_OK;
}

/* ---- one tensor -------------------------------------------------------------------------- */

static kl_err dim_size(int64_t *out, const kl_task *t, const kl_workload *w, kl_str dim,
                       kl_error *e) {
    const int index = kl_task_axis(t, dim);
    if (index < 0) return eval(out, dim, "shape", t, w, t->n_axes, e);
    *out = w->axes[index];
    if (*out < 1)
        return kl_fail(e, KL_EINVAL, "shape", "axis '%.*s' is %lld; the smallest size is 1",
                       KL_STR_ARG(dim), (long long)*out);
    return KL_OK;
}

kl_err kl_task_shape(kl_shape *out, const kl_task *t, const kl_workload *w, int tensor,
                     kl_error *e) {
    if (tensor < 0 || tensor >= t->n_tensors)
        return kl_fail(e, KL_EINVAL, "shape", "there is no tensor %d", tensor);
    const kl_tensor *which = &t->tensors[tensor];
    int64_t bytes = (int64_t)kl_dtype_bytes(w->dtypes[tensor]);
    *out = (kl_shape){.ndim = which->ndim, .elems = 1};
    for (int i = 0; i < which->ndim; i++) {
        const kl_err err = dim_size(&out->dims[i], t, w, which->dims[i], e);
        if (err) return err;
        if (__builtin_mul_overflow(bytes, out->dims[i], &bytes) ||
            (uint64_t)bytes > KL_MAX_TENSOR_BYTES) {
            kl_fail(e, KL_EINVAL, "shape", "tensor '%.*s' is larger than %llu GiB",
                    KL_STR_ARG(which->name), KL_MAX_TENSOR_BYTES >> 30);
            return kl_hint(e, "choose smaller sizes for the axes of its shape");
        }
        out->elems *= out->dims[i]; /* not above `bytes` */
    }
    KL_ASSERT(out->elems > 0 && out->elems <= bytes);
    out->bytes = (size_t)bytes;
    return KL_OK;
}

kl_err kl_task_work(double *flops, double *bytes, const kl_task *t, const kl_workload *w,
                    kl_error *e) {
    int64_t operations = 0;
    *flops = *bytes = 0;
    if (t->flops.len > 0) {
        const kl_err err = eval(&operations, t->flops, "flops", t, w, t->n_axes, e);
        if (err) return err;
        if (operations < 0)
            return kl_fail(e, KL_EINVAL, "flops", "\"%.*s\" is negative", KL_STR_ARG(t->flops));
    }
    for (int i = 0; i < t->n_tensors; i++) {
        kl_shape shape;
        const kl_err err = kl_task_shape(&shape, t, w, i, e);
        if (err) return err;
        *bytes += (double)shape.bytes;
    }
    *flops = (double)operations;
    return KL_OK;
}

/* ---- can its values be drawn? ------------------------------------------------------------ */

void kli_integer_range(kl_dtype dtype, int64_t *low, int64_t *high) {
    KL_ASSERT(!kl_dtype_is_float(dtype));
    switch (dtype) {
    case KL_I32:
        *low = INT32_MIN, *high = INT32_MAX;
        break;
    case KL_I16:
        *low = INT16_MIN, *high = INT16_MAX;
        break;
    case KL_I8:
        *low = INT8_MIN, *high = INT8_MAX;
        break;
    case KL_U8:
        *low = 0, *high = UINT8_MAX;
        break;
    case KL_BOOL:
        *low = 0, *high = 1;
        break;
    default:
        *low = INT64_MIN, *high = INT64_MAX;
        break;
    }
}

static kl_err shape_misfit(kl_error *e, const kl_task *t, int tensor, const char *what) {
    return kl_fail(e, KL_EINVAL, "distribution", "input '%.*s': %s",
                   KL_STR_ARG(t->tensors[tensor].name), what);
}

static kl_err check_constant(const kl_task *t, const kl_workload *w, int tensor, kl_error *e) {
    const double value = w->dists[tensor].value;
    int64_t low, high;
    if (kl_dtype_is_float(w->dtypes[tensor])) return KL_OK;
    kli_integer_range(w->dtypes[tensor], &low, &high);
    if (value != floor(value) || value < (double)low || value > (double)high)
        return shape_misfit(e, t, tensor, "the value does not fit the dtype");
    return KL_OK;
}

static kl_err check_bounds(const kl_task *t, const kl_workload *w, int tensor, kl_error *e) {
    const kl_dist *dist = &w->dists[tensor];
    int64_t first = 0, end = 0, low, high;
    kl_err err = kli_dist_bound(&first, dist->low_expr, dist->low, t, w, e);
    if (err || (err = kli_dist_bound(&end, dist->high_expr, dist->high, t, w, e))) return err;
    if (dist->kind == KL_DIST_UNIFORM) {
        const double from = dist->low_expr.len > 0 ? (double)first : dist->low;
        const double to = dist->high_expr.len > 0 ? (double)end : dist->high;
        return from < to ? KL_OK : shape_misfit(e, t, tensor, "\"low\" is not below \"high\"");
    }
    if (first >= end) return shape_misfit(e, t, tensor, "\"low\" is not below \"high\"");
    if (kl_dtype_is_float(w->dtypes[tensor])) return KL_OK;
    kli_integer_range(w->dtypes[tensor], &low, &high);
    if (first < low || end - 1 > high)
        return shape_misfit(e, t, tensor, "the bounds do not fit the dtype");
    return KL_OK;
}

static kl_err check_offsets(const kl_task *t, const kl_workload *w, int tensor,
                            const kl_shape *shape, kl_error *e) {
    int64_t total = 0, low, high;
    const kl_err err = kli_dist_bound(&total, w->dists[tensor].total, 0, t, w, e);
    if (err) return err;
    if (kl_dtype_is_float(w->dtypes[tensor]) || shape->ndim != 1 || shape->elems < 2)
        return shape_misfit(e, t, tensor, "offsets need one dimension of at least 2 integers");
    if (total < shape->elems - 1)
        return shape_misfit(e, t, tensor, "the total is smaller than the number of cuts");
    kli_integer_range(w->dtypes[tensor], &low, &high);
    return total <= high ? KL_OK : shape_misfit(e, t, tensor, "the total does not fit the dtype");
}

static kl_err shape_check_dist(const kl_task *t, const kl_workload *w, int tensor,
                               const kl_shape *shape, kl_error *e) {
    const kl_dist *dist = &w->dists[tensor];
    const int64_t row = shape->ndim > 0 ? shape->dims[shape->ndim - 1] : 1;
    if (dist->l2norm && (!kl_dtype_is_float(w->dtypes[tensor]) || shape->ndim == 0))
        return shape_misfit(e, t, tensor, "only rows of floats can be normalised");
    switch (dist->kind) {
    case KL_DIST_CONSTANT:
        return check_constant(t, w, tensor, e);
    case KL_DIST_UNIFORM:
    case KL_DIST_UNIFORM_INT:
        return check_bounds(t, w, tensor, e);
    case KL_DIST_OFFSETS:
        return check_offsets(t, w, tensor, shape, e);
    case KL_DIST_DISTINCT:
        return row <= kli_distinct_capacity(w->dtypes[tensor])
                   ? KL_OK
                   : shape_misfit(e, t, tensor,
                                  "the dtype has fewer distinct values than the last axis");
    default:
        return KL_OK;
    }
}

/* ---- a workload -------------------------------------------------------------------------- */

static kl_err settle_axes(kl_workload *w, const kl_task *t, kl_error *e) {
    for (int i = 0; i < t->n_axes; i++) {
        const kl_axis *axis = &t->axes[i];
        if (axis->kind == KL_AXIS_CONST) w->axes[i] = axis->value;
        if (axis->kind == KL_AXIS_EXPR) {
            const kl_err err = eval(&w->axes[i], axis->expr, "axis", t, w, i, e);
            if (err) return err;
        }
        if (w->axes[i] < 1)
            return kl_fail(e, KL_EINVAL, "axis", "axis '%.*s' is %lld; the smallest size is 1",
                           KL_STR_ARG(axis->name), (long long)w->axes[i]);
    }
    return KL_OK;
}

/* A constraint that cannot be read was warned about when the definition was loaded (definition.c).
 */
static kl_err check_constraints(const kl_workload *w, const kl_task *t, kl_error *e) {
    for (int i = 0; i < t->n_constraints; i++) {
        kli_axes axes = {t, w, t->n_axes};
        kli_fault fault;
        int64_t holds = 1;
        if (kli_expr_run(&holds, t->constraints[i], true, kli_axes_lookup, &axes, &fault)) continue;
        const kl_err err = eval(&holds, t->constraints[i], "constraint", t, w, t->n_axes, e);
        if (err) return err;
        if (holds == 0)
            return kl_fail(e, KL_EINVAL, "constraint", "the constraint \"%.*s\" does not hold",
                           KL_STR_ARG(t->constraints[i]));
    }
    return KL_OK;
}

/* Plain axes first: an expression may use one that is declared behind it. */
kl_err kli_workload_complete(kl_workload *w, const kl_task *t, kl_error *e) {
    double flops, bytes;
    kl_err err;
    for (int i = 0; i < t->n_axes; i++)
        if (t->axes[i].kind == KL_AXIS_CONST) w->axes[i] = t->axes[i].value;
    if ((err = settle_axes(w, t, e)) || (err = check_constraints(w, t, e)) ||
        (err = kl_task_work(&flops, &bytes, t, w, e)))
        return err;
    for (int i = 0; i < t->n_inputs; i++) {
        kl_shape shape;
        if ((err = kl_task_shape(&shape, t, w, i, e)) ||
            (err = shape_check_dist(t, w, i, &shape, e)))
            return err;
        const kl_dist *dist = &w->dists[i];
        if (t->tensors[i].is_scalar)
            w->scalars[i] = dist->kind == KL_DIST_CONSTANT ? dist->value : kli_scalar_draw(t, w, i);
    }
    return KL_OK;
}
