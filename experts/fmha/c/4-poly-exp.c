// The exponential of a whole vector by a polynomial.  adds: poly_exp_simd
// Why: the library's expf takes one number a call, and there are as many calls as scores.
// Needs: an error of 1 ulp is enough; arguments of at most 0.  e^x is 2^(x log2(e)), and that factor joins the scale.
// measured: 1.21 [1.21, 1.22] x openblas at cpu, 1.15 [1.15, 1.16] at cpu-large; x86-64-v4/gcc-12, AMD EPYC
// SPDX-License-Identifier: Apache-2.0
//! buffer  weights: f32[total_kv, 16]
//! buffer  query: f32[D, 16]
//! buffer  sums: f32[D, 16]
//! launch  fmha args(q, k, v, qo_offsets, kv_offsets, causal, output, weights, query, sums, B, H, D)
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if KL_DTYPE_q != KL_F32
#error "this kernel has float32 arithmetic only"
#endif
#if defined(__AVX512F__)
enum { BYTES = 64 };
#define larger _mm512_max_ps
#elif defined(__AVX__)
enum { BYTES = 32 };
#define larger _mm256_max_ps
#else
enum { BYTES = 16 };
#define larger _mm_max_ps
#endif
enum { LANES = BYTES / 4, QUERIES = LANES };

#define UNSEEN (-0x1p100f)    // score of a key that a row does not see; a power of two, so that scaling it is exact

typedef float   vf __attribute__((vector_size(BYTES), may_alias));
typedef int32_t vi __attribute__((vector_size(BYTES), may_alias));

typedef struct {    // one head of one sequence; pointers at its first token
    const float *q, *k, *v;
    float       *output;
    int32_t      rows, keys, causal;
    float        scale;
    int64_t      stride, width;    // floats from token to token; of a head
} head;

typedef struct {    // QUERIES rows of a head: every row in a lane of its own, so softmax never looks across lanes
    vf *query, *p, *sums;    // [width], [keys], [width]
    vf  total;
    vi  seen;                // so many keys; 0 or less: none
} tile;

static inline vf spread(float x) { return x - (vf){0}; }

// 2^x, to 1 ulp: the integer part goes into the exponent bits, a polynomial takes the rest.
static inline vf exp2_of(vf x)
{
    x = larger(x, spread(-126.0f));
    const vf shifted = x + 12582912.0f, r = x - (shifted - 12582912.0f);    // 1.5 * 2^23 rounds to an integer
    vf p = r * 0.0013276472f + 0.0096755413f;
    p = p * r + 0.055507133f;
    p = p * r + 0.24022120f;
    p = p * r + 0.69314697f;
    p = p * r + 1.0f;
    return (vf)((vi)p + ((vi)shifted << 23));
}

// p[key][query] = k . q
static void score(const head *h, const tile *t, int32_t count)
{
    for (int32_t j = 0; j < count; j++) {
        vf sum = {0};
        for (int64_t d = 0; d < h->width; d++)
            sum += h->k[j * h->stride + d] * t->query[d];
        t->p[j] = sum;
    }
}

// A key that a row does not see scores so little that its weight is nothing.
static void mask(const tile *t, int32_t count)
{
    for (int32_t j = 0; j < count; j++) {
        const vi sees = t->seen > j;
        t->p[j] = (vf)((sees & (vi)t->p[j]) | (~sees & (vi)spread(UNSEEN)));
    }
}

// Scores become weights, relative to the largest; they sum to `total`.
static void soften(const head *h, tile *t, int32_t count)
{
    vf top = spread(UNSEEN), total = {0};
    for (int32_t j = 0; j < count; j++)
        top = larger(top, t->p[j]);
    const float scale = h->scale;
    const vf    shift = top * scale;
    for (int32_t j = 0; j < count; j++) {
        const vf weight = exp2_of(t->p[j] * scale - shift);
        t->p[j] = weight;
        total += weight;
    }
    t->total = total;
}

// sums[d][query] = v . p
static void gather(const head *h, tile *t, int32_t count)
{
    memset(t->sums, 0, (size_t)h->width * QUERIES * sizeof(float));
    for (int32_t j = 0; j < count; j++)
        for (int64_t d = 0; d < h->width; d++)
            t->sums[d] += h->v[j * h->stride + d] * t->p[j];
}

static int32_t seen_by(const head *h, int32_t row)
{
    return h->causal && row < h->rows ? row + 1 + h->keys - h->rows : h->keys;
}

// Queries are turned into lanes once; lanes of rows that are missing hold zeros.
static void open_tile(const head *h, tile *t, int32_t row, int32_t rows)
{
    memset(t->query, 0, (size_t)h->width * QUERIES * sizeof(float));
    for (int32_t n = 0; n < rows; n++)
        for (int64_t d = 0; d < h->width; d++)
            ((float *)t->query)[d * QUERIES + n] = h->q[(row + n) * h->stride + d];
    for (int32_t n = 0; n < QUERIES; n++)
        t->seen[n] = seen_by(h, row + n);
}

static void close_tile(const head *h, const tile *t, int32_t row, int32_t rows)
{
    for (int32_t n = 0; n < rows; n++) {
        const float share = seen_by(h, row + n) > 0 ? 1 / t->total[n] : 0;
        for (int64_t d = 0; d < h->width; d++)
            h->output[(row + n) * h->stride + d] = ((const float *)t->sums)[d * QUERIES + n] * share;
    }
}

static void attend(const head *h, tile *t, int32_t row)
{
    const int32_t rows = h->rows - row < QUERIES ? h->rows - row : QUERIES;
    const int32_t last = seen_by(h, row + rows - 1) > 0 ? seen_by(h, row + rows - 1) : 0;
    open_tile(h, t, row, rows);
    score(h, t, last);
    mask(t, last);
    soften(h, t, last);
    gather(h, t, last);
    close_tile(h, t, row, rows);
}

void fmha(const float *q, const float *k, const float *v, const int32_t *qo_offsets, const int32_t *kv_offsets,
          int32_t causal, float *output, float *weights, float *query, float *sums,
          int32_t B, int32_t H, int32_t D)
{
    const int64_t stride = (int64_t)H * D;
    const float   scale = 1.44269504f / sqrtf((float)D);
    for (int32_t b = 0; b < B; b++)
        for (int32_t n = 0; n < H; n++) {
            const int64_t row = qo_offsets[b] * stride + n * D, key = kv_offsets[b] * stride + n * D;
            const head h = {q + row, k + key, v + key, output + row,
                            qo_offsets[b + 1] - qo_offsets[b], kv_offsets[b + 1] - kv_offsets[b], causal, scale,
                            stride, D};
            tile t = {.query = (vf *)query, .p = (vf *)weights, .sums = (vf *)sums};
            for (int32_t i = 0; i < h.rows; i += QUERIES)
                attend(&h, &t, i);
        }
}
