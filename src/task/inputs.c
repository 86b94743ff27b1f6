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
#include "task_impl.h"

#define INPUTS_BLOCK                                                                               \
    1024 /* elements drawn at once: 4 or 8 KiB of stack, in the first-level cache */
#define MAX_THREADS 256
#define MIN_SHARE 65536 /* elements below which a thread costs more than it saves */
#define FEISTEL_ROUNDS 4
#define NORM_EPSILON 1e-6

typedef struct {
    const kl_dist *dist;
    kl_dtype dtype;
    kl_stream values, order; /* order: permutations of rows */
    int64_t elems, row;      /* row: length of the last axis */
    int64_t active;          /* elements of a row that are not zero */
    float scale, after;      /* while drawing, and after normalising */
    double low, high;
    int64_t first;  /* of a range of integers */
    uint64_t count; /* its length */
} draw_ctx;

/* ---- random order ------------------------------------------------------------------------ */

static int half_bits(uint64_t n) {
    int half = 2;
    while (half < 32 && ((uint64_t)1 << (2 * half)) < n) half++;
    return half;
}

/* Where element i of permutation `which` of [0, n) goes: a Feistel network over the next even
 * number of bits, walked until it lands inside (at most 16 steps on average for tiny n, 4
 * otherwise). */
static uint64_t permute(kl_stream s, uint64_t which, uint64_t i, uint64_t n) {
    const int half = half_bits(n);
    const uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < FEISTEL_ROUNDS; round++) {
            const kl_stream key = {kli_stream_u64(s, which * FEISTEL_ROUNDS + round)};
            const uint64_t next = left ^ (kli_stream_u64(key, right) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* Significant bits, and the pattern of 8.0: the largest magnitude when patterns are counted. */
static void float_format(kl_dtype dtype, int *digits, int64_t *top) {
    *top = 0;
    switch (dtype) {
    case KL_F16:
        *digits = 11, *top = 0x4800;
        break;
    case KL_BF16:
        *digits = 8, *top = 0x4100;
        break;
    case KL_F8E4M3:
        *digits = 4, *top = 0x50;
        break;
    case KL_F8E5M2:
        *digits = 3, *top = 0x48;
        break;
    default:
        *digits = 24;
        break;
    }
}

int64_t kli_distinct_capacity(kl_dtype dtype) {
    int digits;
    int64_t low, high, top;
    if (!kl_dtype_is_float(dtype)) {
        kli_integer_range(dtype, &low, &high);
        return high == INT64_MAX ? INT64_MAX : high - low + 1;
    }
    float_format(dtype, &digits, &top);
    return top > 0 ? 2 * (top - 1) : (int64_t)2 << digits;
}

/* The rank-th smallest of n different floats: evenly spaced while the significand holds that, else
 * neighbouring patterns below 8, which are denser towards zero. */
static float distinct_float(kl_dtype dtype, int64_t rank, int64_t n) {
    KL_ASSERT(rank >= 0 && rank < n);
    const int64_t centred = rank - n / 2;
    int digits, spread = 0;
    int64_t top;
    float_format(dtype, &digits, &top);
    if (n / 2 <= (int64_t)1 << digits) {
        while (((int64_t)2 << spread) < n / 2) spread++;
        return ldexpf((float)centred, -spread);
    }
    const uint16_t magnitude = (uint16_t)(top - n / 2 + (centred < 0 ? -centred : centred));
    const uint8_t narrow = (uint8_t)magnitude;
    const double value =
        kl_dtype_load(dtype, kl_dtype_bytes(dtype) == 1 ? (const void *)&narrow : &magnitude, 0);
    return centred < 0 ? -(float)value : (float)value;
}

/* ---- floats ------------------------------------------------------------------------------ */

static void draw_normal(const draw_ctx *d, int64_t first, int n, float *out) {
    kli_stream_fill_normal(d->values, (uint64_t)first, out, (size_t)n);
    if (d->scale != 1.0f)
        for (int i = 0; i < n; i++) out[i] *= d->scale;
}

static void draw_uniform(const draw_ctx *d, int64_t first, int n, float *out) {
    for (int i = 0; i < n; i++) {
        const double unit = kli_stream_uniform(d->values, (uint64_t)(first + i));
        float value = (float)(d->low + unit * (d->high - d->low));
        if ((double)value >= d->high) /* rounding reached the excluded bound */
            value = nextafterf((float)d->high, -INFINITY);
        out[i] = value * d->scale;
    }
}

static void draw_gate(const draw_ctx *d, int64_t first, int n, float *out) {
    const bool is_log = d->dist->kind == KL_DIST_LOGSIGMOID;
    kli_stream_fill_normal(d->values, (uint64_t)first, out, (size_t)n);
    for (int i = 0; i < n; i++) {
        const double power = exp(-(double)out[i]);
        out[i] = (float)(is_log ? -log1p(power) : 1 / (1 + power)) * d->scale;
    }
}

static void draw_ties(const draw_ctx *d, int64_t first, int n, float *out) {
    kli_stream_fill_normal(d->values, (uint64_t)first, out, (size_t)n);
    for (int i = 0; i < n; i++) out[i] = floorf(out[i] * 2 + 0.5f) * 0.5f * d->scale;
}

static void draw_distinct(const draw_ctx *d, int64_t first, int n, float *out) {
    for (int i = 0; i < n; i++) {
        const int64_t row = (first + i) / d->row;
        const uint64_t rank =
            permute(d->order, (uint64_t)row, (uint64_t)((first + i) % d->row), (uint64_t)d->row);
        out[i] = distinct_float(d->dtype, (int64_t)rank, d->row);
    }
}

/* Zero outside a random share of the last axis: the same positions in every row, as heads without a
 * gate are. */
static void mask_inactive(const draw_ctx *d, int64_t first, int n, float *out) {
    for (int i = 0; i < n; i++)
        if (permute(d->order, 0, (uint64_t)((first + i) % d->row), (uint64_t)d->row) >=
            (uint64_t)d->active)
            out[i] = 0;
}

static void draw_floats(const draw_ctx *d, int64_t first, int n, float *out) {
    switch (d->dist->kind) {
    case KL_DIST_UNIFORM:
        draw_uniform(d, first, n, out);
        break;
    case KL_DIST_LOGSIGMOID:
    case KL_DIST_SIGMOID:
        draw_gate(d, first, n, out);
        break;
    case KL_DIST_TIES:
        draw_ties(d, first, n, out);
        break;
    case KL_DIST_DISTINCT:
        draw_distinct(d, first, n, out);
        break;
    case KL_DIST_CONSTANT:
        for (int i = 0; i < n; i++) out[i] = (float)d->dist->value;
        break;
    default:
        draw_normal(d, first, n, out);
        break;
    }
    if (d->active < d->row) mask_inactive(d, first, n, out);
}

/* ---- whole numbers ----------------------------------------------------------------------- */

static bool draws_integers(const draw_ctx *d) {
    const bool is_float = kl_dtype_is_float(d->dtype);
    switch (d->dist->kind) {
    case KL_DIST_UNIFORM_INT:
    case KL_DIST_BOOL:
        return true;
    case KL_DIST_CONSTANT:
    case KL_DIST_DISTINCT:
        return !is_float;
    default:
        return false;
    }
}

static int64_t draw_integer(const draw_ctx *d, int64_t index) {
    const uint64_t at = (uint64_t)index;
    switch (d->dist->kind) {
    case KL_DIST_BOOL:
        return (int64_t)(kli_stream_u64(d->values, at) >> 63);
    case KL_DIST_CONSTANT:
        return (int64_t)d->dist->value;
    case KL_DIST_DISTINCT: {
        const uint64_t rank =
            permute(d->order, (uint64_t)(index / d->row), at % (uint64_t)d->row, (uint64_t)d->row);
        const bool is_signed = d->dtype != KL_U8 && d->dtype != KL_BOOL;
        return (int64_t)rank - (is_signed ? d->row / 2 : 0);
    }
    default:
        return (int64_t)((uint64_t)d->first + kli_stream_below(d->values, at, d->count));
    }
}

/* ---- storing ----------------------------------------------------------------------------- */

static uint32_t inputs_bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint16_t bfloat_of(float value) {
    const uint32_t bits = inputs_bits_of(value);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Nearest even.  Below 2^-14 the sum with 0.5 has exactly the half's last place, so the addition
 * itself rounds. */
static uint16_t half_of(float value) {
    const uint32_t sign = inputs_bits_of(value) >> 16 & 0x8000;
    const uint32_t bits = inputs_bits_of(value) & 0x7fffffff;
    const uint32_t normal = (bits + 0x0fff + (bits >> 13 & 1) - 0x38000000) >> 13;
    const uint32_t subnormal = inputs_bits_of(fabsf(value) + 0.5f) - 0x3f000000;
    const uint32_t finite = bits < 0x38800000 ? subnormal : normal;
    return (uint16_t)(sign | (bits >= 0x477ff000 ? 0x7c00 : finite));
}

static void store_floats(const draw_ctx *d, void *data, int64_t first, int n, const float *values) {
    switch (d->dtype) {
    case KL_F32:
        memcpy((float *)data + first, values, (size_t)n * sizeof *values);
        break;
    case KL_F16:
        for (int i = 0; i < n; i++) ((uint16_t *)data)[first + i] = half_of(values[i]);
        break;
    case KL_BF16:
        for (int i = 0; i < n; i++) ((uint16_t *)data)[first + i] = bfloat_of(values[i]);
        break;
    default:
        for (int i = 0; i < n; i++)
            kl_dtype_store(d->dtype, data, (size_t)(first + i), (double)values[i]);
        break;
    }
}

static void store_integers(const draw_ctx *d, void *data, int64_t first, int n,
                           const int64_t *values) {
    for (int i = 0; i < n; i++) {
        switch (d->dtype) {
        case KL_I64:
            ((int64_t *)data)[first + i] = values[i];
            break; /* a double would lose bits above 2^53 */
        case KL_I32:
            ((int32_t *)data)[first + i] = (int32_t)values[i];
            break;
        default:
            kl_dtype_store(d->dtype, data, (size_t)(first + i), (double)values[i]);
            break;
        }
    }
}

/* ---- ranges ------------------------------------------------------------------------------ */

static int block_at(int64_t at, int64_t end) {
    return end - at < INPUTS_BLOCK ? (int)(end - at) : INPUTS_BLOCK;
}

static void fill_elements(const draw_ctx *d, void *data, int64_t begin, int64_t end) {
    const bool integers = draws_integers(d);
    union {
        float real[INPUTS_BLOCK];
        int64_t whole[INPUTS_BLOCK];
    } block;
    for (int64_t at = begin; at < end; at += INPUTS_BLOCK) {
        const int n = block_at(at, end);
        if (!integers) {
            draw_floats(d, at, n, block.real);
            store_floats(d, data, at, n, block.real);
            continue;
        }
        for (int i = 0; i < n; i++) block.whole[i] = draw_integer(d, at + i);
        store_integers(d, data, at, n, block.whole);
    }
}

/* One row divided by its length.  A row of several blocks is drawn twice, which is cheaper than
 * keeping it. */
static void fill_row(const draw_ctx *d, void *data, int64_t begin) {
    KL_ASSERT(begin >= 0 && begin + d->row <= d->elems);
    const int64_t end = begin + d->row;
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
        if (d->row > INPUTS_BLOCK) draw_floats(d, at, n, values);
        for (int i = 0; i < n; i++) values[i] *= factor;
        store_floats(d, data, at, n, values);
    }
}

static void inputs_fill_rows(const draw_ctx *d, void *data, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) fill_row(d, data, row * d->row);
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
    const int64_t units = d->dist->l2norm ? d->elems / d->row : d->elems;
    const int64_t useful = d->elems / MIN_SHARE + 1;
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
    const int64_t parts = d->elems - 1;
    KL_ASSERT(parts >= 1 && total >= parts);
    const wide rest = (wide)(total - parts);
    uint64_t sum = 0, before = 0;
    for (int64_t i = 0; i < parts; i++) {
        const uint64_t weight =
            d->dist->even ? 1 : kli_stream_below(d->values, (uint64_t)i, 255) + 1;
        sum += weight * weight;
    }
    for (int64_t i = 0; i <= parts; i++) {
        const int64_t offset = d->dist->even ? (int64_t)((wide)total * (wide)i / (wide)parts)
                                             : i + (int64_t)(rest * before / sum);
        store_integers(d, data, i, 1, &offset);
        const uint64_t weight =
            d->dist->even ? 1 : kli_stream_below(d->values, (uint64_t)i, 255) + 1;
        before += i < parts ? weight * weight : 0;
    }
}

/* ---- entry ------------------------------------------------------------------------------- */

static kl_stream inputs_stream_of(uint64_t seed, const char *what, kl_str tensor) {
    char name[KL_MAX_NAME + 16];
    (void)snprintf(name, sizeof name, "%s/%.*s", what, KL_STR_ARG(tensor));
    return kli_stream_of(seed, name);
}

static kl_err set_bounds(draw_ctx *d, const kl_task *t, const kl_workload *w, kl_error *e) {
    const kl_dist *dist = d->dist;
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
    d->first = low;
    d->count = (uint64_t)high - (uint64_t)low;
    return KL_OK;
}

static kl_err inputs_prepare(draw_ctx *d, const kl_task *t, const kl_workload *w, int tensor,
                             const kl_shape *shape, uint64_t seed, double stress, kl_error *e) {
    const kl_dist *dist = &w->dists[tensor];
    const kl_str name = t->tensors[tensor].name;
    const double own = dist->kind == KL_DIST_NORMAL ? stress : 1;
    *d = (draw_ctx){.dist = dist, .dtype = w->dtypes[tensor], .elems = shape->elems};
    d->row = shape->ndim > 0 ? shape->dims[shape->ndim - 1] : 1;
    KL_ASSERT(d->row > 0 && d->elems % d->row == 0);
    d->active = dist->active < 1 ? (int64_t)ceil(dist->active * (double)d->row) : d->row;
    d->values = inputs_stream_of(seed, "input", name);
    d->order = inputs_stream_of(seed, "order", name);
    /* A row that is normalised keeps its length under stress: what it feeds may rely on it. */
    d->scale = (float)(dist->l2norm ? own : own * dist->scale);
    d->after = (float)dist->scale;
    if (dist->kind == KL_DIST_DISTINCT && d->row > kli_distinct_capacity(d->dtype))
        return kl_fail(e, KL_EINVAL, "distribution",
                       "the dtype has fewer distinct values than the last axis");
    return set_bounds(d, t, w, e);
}

double kli_scalar_draw(const kl_task *t, const kl_workload *w, int tensor) {
    const kl_shape one = {.elems = 1};
    draw_ctx d;
    uint64_t cell = 0;
    if (w->dists[tensor].kind == KL_DIST_CUSTOM ||
        inputs_prepare(&d, t, w, tensor, &one, 0, 1, kl_ignored()))
        return NAN;
    fill_elements(&d, &cell, 0, 1);
    return kl_dtype_load(d.dtype, &cell, 0);
}

static kl_err fill_drawn(void *data, const kl_task *t, const kl_workload *w, int tensor,
                         const kl_shape *shape, uint64_t seed, double scale, int threads,
                         kl_error *e) {
    draw_ctx d;
    kl_err err = inputs_prepare(&d, t, w, tensor, shape, seed, scale, e);
    if (err) return err;
    if (d.dist->kind != KL_DIST_OFFSETS) {
        fill_parallel(&d, data, threads);
        return KL_OK;
    }
    int64_t total = 0;
    if ((err = kli_dist_bound(&total, d.dist->total, 0, t, w, e))) return err;
    if (d.elems < 2 || total < d.elems - 1)
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
