/* inputs.c - the values of inputs: element i of tensor x under seed s is a pure function of (s,
 * "x", i).
 *
 * Floats are drawn in float32 a block at a time and rounded once to the dtype; whole numbers are
 * drawn as such. Because no element depends on another (rows, when they are normalised), index
 * ranges go to threads as they like and the bytes do not depend on how many there were.  Random
 * orders come from a keyed bijection of [0, n) instead of a shuffle, for the same reason and
 * because it needs no memory.
 *
 *   fill -> drawing (constants of this tensor) -> ranges -> blocks: draw -> mask -> normalise ->
 * store
 *
 * Cost per element on one core: normal to float32 or a 16-bit float about 1 ns, permutations and
 * gates about 45 ns. Deliberately not here: reading tensors from files (safetensors.c), whether a
 * draw is possible (shape.c). SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "inputs.h"
#include "task_impl.h"

#define INPUTS_BLOCK                                                                               \
    1024 /* elements drawn at once: 4 or 8 KiB of stack, in the first-level cache */
#define MAX_THREADS 256
#define MIN_SHARE 65536 /* elements below which a thread costs more than it saves */
#define NORM_EPSILON 1e-6

typedef struct {
    const kl_dist *dist;
    kli_draw draw;
    float after; /* length of a row that is normalised */
} draw_ctx;

/* ---- floats ------------------------------------------------------------------------------ */

int64_t kli_distinct_capacity(kl_dtype dtype) {
    int64_t low, high;
    if (!kl_dtype_is_float(dtype)) {
        kli_integer_range(dtype, &low, &high);
        return high == INT64_MAX ? INT64_MAX : high - low + 1;
    }
    const int64_t top = kli_float_top((int)dtype);
    return top > 0 ? 2 * (top - 1) : (int64_t)2 << kli_float_digits((int)dtype);
}

static void draw_normal(const kli_draw *d, int64_t first, int n, float *out) {
    kli_stream_fill_normal((kl_stream){d->values}, (uint64_t)first, out, (size_t)n);
    if (d->scale != 1.0f)
        for (int i = 0; i < n; i++) out[i] *= d->scale;
}

static void draw_gate(const kli_draw *d, bool is_log, int64_t first, int n, float *out) {
    kli_stream_fill_normal((kl_stream){d->values}, (uint64_t)first, out, (size_t)n);
    for (int i = 0; i < n; i++) {
        const double power = exp(-(double)out[i]);
        out[i] = (float)(is_log ? -log1p(power) : 1 / (1 + power)) * d->scale;
    }
}

static bool is_gate(const kl_dist *dist) {
    return dist->kind == KL_DIST_LOGSIGMOID || dist->kind == KL_DIST_SIGMOID;
}

static void draw_floats(const draw_ctx *d, int64_t first, int n, float *out) {
    if (is_gate(d->dist))
        draw_gate(&d->draw, d->dist->kind == KL_DIST_LOGSIGMOID, first, n, out);
    else if (d->draw.kind == KLI_DRAW_NORMAL)
        draw_normal(&d->draw, first, n, out);
    else
        for (int i = 0; i < n; i++) out[i] = kli_draw_float(&d->draw, first + i);
    if (d->draw.active < d->draw.row)
        for (int i = 0; i < n; i++)
            if (!kli_draw_is_active(&d->draw, first + i)) out[i] = 0;
}

static void store_floats(const draw_ctx *d, void *data, int64_t first, int n, const float *values) {
    switch (d->draw.dtype) {
    case KL_F32:
        memcpy((float *)data + first, values, (size_t)n * sizeof *values);
        break;
    case KL_F16:
        for (int i = 0; i < n; i++) ((uint16_t *)data)[first + i] = kli_half_of(values[i]);
        break;
    case KL_BF16:
        for (int i = 0; i < n; i++) ((uint16_t *)data)[first + i] = kli_bfloat_of(values[i]);
        break;
    default:
        for (int i = 0; i < n; i++) kli_store_float(d->draw.dtype, data, first + i, values[i]);
        break;
    }
}

/* ---- ranges ------------------------------------------------------------------------------ */

static int block_at(int64_t at, int64_t end) {
    return end - at < INPUTS_BLOCK ? (int)(end - at) : INPUTS_BLOCK;
}

static void fill_elements(const draw_ctx *d, void *data, int64_t begin, int64_t end) {
    float values[INPUTS_BLOCK];
    if (d->draw.kind >= KLI_DRAW_INTEGER) {
        for (int64_t i = begin; i < end; i++) kli_draw_put(&d->draw, data, i);
        return;
    }
    for (int64_t at = begin; at < end; at += INPUTS_BLOCK) {
        const int n = block_at(at, end);
        draw_floats(d, at, n, values);
        store_floats(d, data, at, n, values);
    }
}

/* One row divided by its length.  A row of several blocks is drawn twice, which is cheaper than
 * keeping it. */
static void fill_row(const draw_ctx *d, void *data, int64_t begin) {
    KL_ASSERT(begin >= 0 && begin + d->draw.row <= d->draw.elems);
    const int64_t end = begin + d->draw.row;
    float values[INPUTS_BLOCK];
    double squares = 0;
    for (int64_t at = begin; at < end; at += INPUTS_BLOCK) {
        const int n = block_at(at, end);
        draw_floats(d, at, n, values);
        for (int i = 0; i < n; i++) squares += (double)values[i] * (double)values[i];
    }
    const float factor = (float)((double)d->after / sqrt(squares + NORM_EPSILON));
    for (int64_t at = begin; at < end; at += INPUTS_BLOCK) {
        const int n = block_at(at, end);
        if (d->draw.row > INPUTS_BLOCK) draw_floats(d, at, n, values);
        for (int i = 0; i < n; i++) values[i] *= factor;
        store_floats(d, data, at, n, values);
    }
}

static void inputs_fill_rows(const draw_ctx *d, void *data, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) fill_row(d, data, row * d->draw.row);
}

typedef struct {
    const draw_ctx *draw_ctx;
    void *data;
    int64_t begin, end; /* elements, or rows when they are normalised */
} share;

static void *fill_share(void *argument) {
    const share *s = argument;
    if (s->draw_ctx->dist->l2norm)
        inputs_fill_rows(s->draw_ctx, s->data, s->begin, s->end);
    else
        fill_elements(s->draw_ctx, s->data, s->begin, s->end);
    return NULL;
}

/* The caller takes the last share, and any share whose thread could not be had. */
static void fill_parallel(const draw_ctx *d, void *data, int threads) {
    const int64_t units = d->dist->l2norm ? d->draw.elems / d->draw.row : d->draw.elems;
    const int64_t useful = d->draw.elems / MIN_SHARE + 1;
    int64_t n = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    pthread_t ids[MAX_THREADS];
    share shares[MAX_THREADS];
    bool started[MAX_THREADS] = {false};
    n = n < useful ? n : useful;
    n = n < units ? n : units;
    KL_ASSERT(n >= 1 && n <= MAX_THREADS);
    for (int64_t i = 0; i < n; i++) {
        const int64_t size = units / n, rest = units % n;
        const int64_t begin = i * size + (i < rest ? i : rest);
        shares[i] = (share){d, data, begin, begin + size + (i < rest ? 1 : 0)};
        started[i] = i < n - 1 && pthread_create(&ids[i], NULL, fill_share, &shares[i]) == 0;
        if (!started[i]) (void)fill_share(&shares[i]);
    }
    for (int64_t i = 0; i < n; i++)
        if (started[i]) (void)pthread_join(ids[i], NULL);
}

/* ---- offsets ----------------------------------------------------------------------------- */

/* 0 = o[0] < o[1] < ... = total.  Each part gets 1, and the rest in proportion to a squared random
 * weight, so that the longest is some three times the mean; in 128-bit integers, so that the last
 * is exactly the total. */
static void fill_offsets(const draw_ctx *d, void *data, int64_t total) {
    __extension__ typedef unsigned __int128 wide;
    const int64_t parts = d->draw.elems - 1;
    KL_ASSERT(parts >= 1 && total >= parts);
    const wide rest = (wide)(total - parts);
    uint64_t sum = 0, before = 0;
    for (int64_t i = 0; i < parts; i++) {
        const uint64_t weight =
            d->dist->even ? 1 : kli_key_below(d->draw.values, (uint64_t)i, 255) + 1;
        sum += weight * weight;
    }
    for (int64_t i = 0; i <= parts; i++) {
        const int64_t offset = d->dist->even ? (int64_t)((wide)total * (wide)i / (wide)parts)
                                             : i + (int64_t)(rest * before / sum);
        kli_store_integer(d->draw.dtype, data, i, offset);
        const uint64_t weight =
            d->dist->even ? 1 : kli_key_below(d->draw.values, (uint64_t)i, 255) + 1;
        before += i < parts ? weight * weight : 0;
    }
}

/* ---- entry ------------------------------------------------------------------------------- */

static uint64_t inputs_key_of(uint64_t seed, const char *what, kl_str tensor) {
    char name[KL_MAX_NAME + 16];
    (void)snprintf(name, sizeof name, "%s/%.*s", what, KL_STR_ARG(tensor));
    return kli_stream_of(seed, name).key;
}

void kli_draw_seed(kli_draw *d, uint64_t seed, kl_str tensor) {
    d->values = inputs_key_of(seed, "input", tensor);
    d->order = inputs_key_of(seed, "order", tensor);
}

static kl_err set_bounds(kli_draw *d, const kl_dist *dist, const kl_task *t, const kl_workload *w,
                         kl_error *e) {
    int64_t low = 0, high = 1;
    kl_err err;
    if (dist->kind != KL_DIST_UNIFORM && dist->kind != KL_DIST_UNIFORM_INT) return KL_OK;
    if ((err = kli_dist_bound(&low, dist->low_expr, dist->low, t, w, e)) ||
        (err = kli_dist_bound(&high, dist->high_expr, dist->high, t, w, e)))
        return err;
    d->low = dist->low_expr.len > 0 ? (double)low : dist->low;
    d->high = dist->high_expr.len > 0 ? (double)high : dist->high;
    if (!(d->low < d->high))
        return kl_fail(e, KL_EINVAL, "distribution", "\"low\" is not below \"high\"");
    d->under_high = nextafterf((float)d->high, -INFINITY);
    d->first = low;
    d->count = (uint64_t)high - (uint64_t)low;
    return KL_OK;
}

static kli_draw_kind draw_kind_of(kl_dist_kind kind, bool is_float) {
    switch (kind) {
    case KL_DIST_UNIFORM:
        return KLI_DRAW_UNIFORM;
    case KL_DIST_TIES:
        return KLI_DRAW_TIES;
    case KL_DIST_DISTINCT:
        return is_float ? KLI_DRAW_DISTINCT : KLI_DRAW_INTEGER_DISTINCT;
    case KL_DIST_CONSTANT:
        return is_float ? KLI_DRAW_CONSTANT : KLI_DRAW_INTEGER_CONSTANT;
    case KL_DIST_UNIFORM_INT:
        return KLI_DRAW_INTEGER;
    case KL_DIST_BOOL:
        return KLI_DRAW_BIT;
    default:
        return KLI_DRAW_NORMAL;
    }
}

static kl_err inputs_prepare(draw_ctx *d, const kl_task *t, const kl_workload *w, int tensor,
                             const kl_shape *shape, double stress, kl_error *e) {
    const kl_dist *dist = &w->dists[tensor];
    const kl_dtype dtype = w->dtypes[tensor];
    const double own = dist->kind == KL_DIST_NORMAL ? stress : 1;
    *d = (draw_ctx){.dist = dist, .after = (float)dist->scale};
    kli_draw *draw = &d->draw;
    *draw = (kli_draw){.kind = (int)draw_kind_of(dist->kind, kl_dtype_is_float(dtype)),
                       .dtype = (int)dtype,
                       .elems = shape->elems,
                       .is_signed = dtype != KL_U8 && dtype != KL_BOOL};
    draw->row = shape->ndim > 0 ? shape->dims[shape->ndim - 1] : 1;
    KL_ASSERT(draw->row > 0 && draw->elems % draw->row == 0);
    draw->active = dist->active < 1 ? (int64_t)ceil(dist->active * (double)draw->row) : draw->row;
    /* A row that is normalised keeps its length under stress: what it feeds may rely on it. */
    draw->scale = (float)(dist->l2norm ? own : own * dist->scale);
    draw->value = (float)dist->value;
    if (draw->kind == KLI_DRAW_INTEGER_CONSTANT) draw->first = (int64_t)dist->value;
    if (dist->kind == KL_DIST_DISTINCT && draw->row > kli_distinct_capacity(dtype))
        return kl_fail(e, KL_EINVAL, "distribution",
                       "the dtype has fewer distinct values than the last axis");
    return set_bounds(draw, dist, t, w, e);
}

bool kli_task_draw(kli_draw *out, const kl_task *t, const kl_workload *w, int tensor,
                   double scale) {
    const kl_dist *dist = &w->dists[tensor];
    kl_shape shape;
    draw_ctx d;
    *out = (kli_draw){.kind = KLI_DRAW_NONE};
    if (t->tensors[tensor].is_scalar || is_gate(dist) || dist->l2norm ||
        dist->kind == KL_DIST_OFFSETS || dist->kind == KL_DIST_FILE ||
        dist->kind == KL_DIST_CUSTOM || kl_task_shape(&shape, t, w, tensor, kl_ignored()) ||
        inputs_prepare(&d, t, w, tensor, &shape, scale, kl_ignored()))
        return false;
    *out = d.draw;
    return true;
}

double kli_scalar_draw(const kl_task *t, const kl_workload *w, int tensor) {
    const kl_shape one = {.elems = 1};
    draw_ctx d;
    uint64_t cell = 0;
    if (w->dists[tensor].kind == KL_DIST_CUSTOM ||
        inputs_prepare(&d, t, w, tensor, &one, 1, kl_ignored()))
        return NAN;
    kli_draw_seed(&d.draw, 0, t->tensors[tensor].name);
    fill_elements(&d, &cell, 0, 1);
    return kl_dtype_load(w->dtypes[tensor], &cell, 0);
}

static kl_err fill_drawn(void *data, const kl_task *t, const kl_workload *w, int tensor,
                         const kl_shape *shape, uint64_t seed, double scale, int threads,
                         kl_error *e) {
    draw_ctx d;
    kl_err err = inputs_prepare(&d, t, w, tensor, shape, scale, e);
    if (err) return err;
    kli_draw_seed(&d.draw, seed, t->tensors[tensor].name);
    if (d.dist->kind != KL_DIST_OFFSETS) {
        fill_parallel(&d, data, threads);
        return KL_OK;
    }
    int64_t total = 0;
    if ((err = kli_dist_bound(&total, d.dist->total, 0, t, w, e))) return err;
    if (d.draw.elems < 2 || total < d.draw.elems - 1)
        return kl_fail(e, KL_EINVAL, "distribution",
                       "the total is smaller than the number of cuts");
    fill_offsets(&d, data, total);
    return KL_OK;
}

kl_err kl_task_fill(void *data, const kl_task *t, const kl_workload *w, int tensor, uint64_t seed,
                    double scale, int threads, kl_error *e) {
    kl_shape shape;
    if (tensor < 0 || tensor >= t->n_inputs)
        return kl_fail(e, KL_EINVAL, "fill", "tensor %d is not an input", tensor);
    const kl_err err = kl_task_shape(&shape, t, w, tensor, e);
    if (err) return err;
    const kl_dist *dist = &w->dists[tensor];
    if (dist->kind == KL_DIST_CUSTOM) {
        kl_fail(e, KL_EINVAL, "definition.json",
                "input '%.*s' can only be made by the task's Python '%.*s', which the gate does "
                "not run",
                KL_STR_ARG(t->tensors[tensor].name), KL_STR_ARG(t->custom_inputs));
        return kl_hint(e,
                       "give its distribution instead: \"klineage\": {\"inputs\": {\"%.*s\": "
                       "{\"dist\": ...}}}; docs/formats/task.md",
                       KL_STR_ARG(t->tensors[tensor].name));
    }
    if (dist->kind == KL_DIST_FILE)
        return kli_safetensors_read(data, dist->file.ptr, dist->tensor_key, w->dtypes[tensor],
                                    &shape, e);
    if (!t->tensors[tensor].is_scalar)
        return fill_drawn(data, t, w, tensor, &shape, seed, scale, threads, e);
    kl_dtype_store(w->dtypes[tensor], data, 0, w->scalars[tensor]);
    return KL_OK;
}
