// One-thread expert.  adds: mask_peel
// Why: only blocks on the diagonal and at the end of the keys have anything to hide; all others skip that pass over p.
// Needs: the least that a row of the tile sees (`open`), known from its first row alone, because rows see ever more.
// measured: 4.22 [4.19, 4.22] x openblas at cpu, 4.33 [4.29, 4.38] at cpu-large; x86-64-v4/gcc-12, AMD EPYC
// SPDX-License-Identifier: Apache-2.0
//! param   KEYS = 64 {32, 64, 128, 256}
//! require KEYS % 8 == 0
//! let     depth = cdiv(D, 8) * 8
//! buffer  packed_k: f32[total_kv + 8, depth]
//! buffer  packed_v: f32[total_kv + 8, depth]
//! buffer  query: f32[D, 32]
//! buffer  sums: f32[depth, 32]
//! launch  fmha args(q, k, v, qo_offsets, kv_offsets, causal, output, packed_k, packed_v, query, sums, B, H, D, depth)
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#if KL_DTYPE_q != KL_F32
#error "this kernel has float32 arithmetic only"
#endif
#if defined(__AVX512F__)    // a ROWS x VECS block of sums, its operands and one broadcast must fit the vector registers
enum { BYTES = 64, ROWS = 8, VECS = 2 };
#define larger _mm512_max_ps
#elif defined(__AVX__)
enum { BYTES = 32, ROWS = 4, VECS = 3 };
#define larger _mm256_max_ps
#else
enum { BYTES = 16, ROWS = 4, VECS = 2 };
#define larger _mm_max_ps
#endif
enum { LANES = BYTES / 4, QUERIES = VECS * LANES };
#define UNROLL _Pragma("GCC unroll 8")    // of loops over ROWS and VECS: their arrays become registers
#define ALONE  __attribute__((noinline))  // registers are shared out for each hot loop by itself
#define UNSEEN (-0x1p100f)    // score of a key that a row does not see; a power of two, so that scaling it is exact

typedef float   vf __attribute__((vector_size(BYTES), may_alias));
typedef int32_t vi __attribute__((vector_size(BYTES), may_alias));

typedef struct {    // one head of one sequence; pointers at its first token
    const float *q, *k, *v;
    float       *output, *packed_k, *packed_v;
    int32_t      rows, keys, causal;
    float        scale;
    int64_t      stride, width, depth;    // floats from token to token; of a head; the same as a multiple of ROWS
} head;

typedef struct {    // QUERIES rows of a head: every row in a lane of its own, so softmax never looks across lanes
    vf *query, *sums;    // [width][VECS], [depth][VECS]
    vf  largest[VECS], shift[VECS], total[VECS];    // largest score; the same scaled; sum of weights
    vi  seen[VECS];      // so many keys; 0 or less: none
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

// sum[r] += a[r * row + i * step] * b[i], over i < count
static inline void multiply(vf sum[ROWS][VECS], const float *a, int64_t row, int64_t step, const vf *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        UNROLL for (int r = 0; r < ROWS; r++)
            UNROLL for (int n = 0; n < VECS; n++)
                sum[r][n] += a[r * row + i * step] * b[i * VECS + n];
}

static inline void store(vf *to, vf sum[ROWS][VECS])
{
    UNROLL for (int r = 0; r < ROWS; r++)
        UNROLL for (int n = 0; n < VECS; n++)
            to[r * VECS + n] = sum[r][n];
}

// p[key][query] = k . q
ALONE static void score(const head *h, const tile *t, int32_t first, int32_t count, vf *p)
{
    for (int32_t j = 0; j < count; j += ROWS) {
        vf sum[ROWS][VECS] = {{{0}}};
        multiply(sum, h->packed_k + (first + j) * h->depth, h->depth, 1, t->query, h->width);
        store(p + j * VECS, sum);
    }
}

// A key that a row does not see scores so little that its weight is nothing.
ALONE static void mask(const tile *t, int32_t first, int32_t count, vf *p)
{
    for (int32_t j = 0; j < count; j++)
        for (int n = 0; n < VECS; n++) {
            const vi sees = t->seen[n] > first + j;
            p[j * VECS + n] = (vf)((sees & (vi)p[j * VECS + n]) | (~sees & (vi)spread(UNSEEN)));
        }
}

// Scores become weights, relative to the largest score so far; `fade` is what older weights are worth now.
ALONE static void soften(const head *h, tile *t, int32_t count, vf *p, vf *fade)
{
    const float scale = h->scale;
    vf top[VECS], shift[VECS], total[VECS];
    UNROLL for (int n = 0; n < VECS; n++)
        top[n] = t->largest[n];
    for (int32_t j = 0; j < count; j++)
        UNROLL for (int n = 0; n < VECS; n++)
            top[n] = larger(top[n], p[j * VECS + n]);
    UNROLL for (int n = 0; n < VECS; n++) {
        shift[n] = top[n] * scale;
        fade[n] = exp2_of(t->shift[n] - shift[n]);
        total[n] = t->total[n] * fade[n];
        t->largest[n] = top[n];
        t->shift[n] = shift[n];
    }
    for (int32_t j = 0; j < count; j++)
        UNROLL for (int n = 0; n < VECS; n++) {
            p[j * VECS + n] = exp2_of(p[j * VECS + n] * scale - shift[n]);
            total[n] += p[j * VECS + n];
        }
    UNROLL for (int n = 0; n < VECS; n++)
        t->total[n] = total[n];
}

// sums[d][query] = fade * sums + v . p
ALONE static void gather(const head *h, tile *t, int32_t first, int32_t count, const vf *p, const vf *fade)
{
    for (int64_t d = 0; d < h->depth; d += ROWS) {
        vf sum[ROWS][VECS], *sums = t->sums + d * VECS;
        UNROLL for (int r = 0; r < ROWS; r++)
            UNROLL for (int n = 0; n < VECS; n++)
                sum[r][n] = sums[r * VECS + n] * fade[n];
        multiply(sum, h->packed_v + first * h->depth + d, 1, h->depth, p, count);
        store(sums, sum);
    }
}

static int32_t seen_by(const head *h, int32_t row)
{
    return h->causal && row < h->rows ? row + 1 + h->keys - h->rows : h->keys;
}

// Queries are turned into lanes once; lanes of rows that are missing hold zeros.
static void open_tile(const head *h, tile *t, int32_t row, int32_t rows)
{
    memset(t->query, 0, (size_t)h->width * QUERIES * sizeof(float));
    memset(t->sums, 0, (size_t)h->depth * QUERIES * sizeof(float));
    for (int32_t n = 0; n < rows; n++)
        for (int64_t d = 0; d < h->width; d++)
            ((float *)t->query)[d * QUERIES + n] = h->q[(row + n) * h->stride + d];
    for (int32_t n = 0; n < QUERIES; n++) {
        t->seen[n / LANES][n % LANES] = seen_by(h, row + n);
        t->largest[n / LANES][n % LANES] = UNSEEN;
        t->shift[n / LANES][n % LANES] = UNSEEN * h->scale;
        t->total[n / LANES][n % LANES] = 0;
    }
}

static void close_tile(const head *h, const tile *t, int32_t row, int32_t rows)
{
    for (int32_t n = 0; n < rows; n++) {
        const float share = seen_by(h, row + n) > 0 ? 1 / t->total[n / LANES][n % LANES] : 0;
        for (int64_t d = 0; d < h->width; d++)
            h->output[(row + n) * h->stride + d] = ((const float *)t->sums)[d * QUERIES + n] * share;
    }
}

static void attend(const head *h, tile *t, int32_t row)
{
    const int32_t rows = h->rows - row < QUERIES ? h->rows - row : QUERIES;
    const int32_t open = seen_by(h, row), last = seen_by(h, row + rows - 1);
    vf p[KL_KEYS * VECS], fade[VECS];    // p stays in the nearest cache from one multiplication to the other
    open_tile(h, t, row, rows);
    for (int32_t j = 0; j < last; j += KL_KEYS) {
        const int32_t left = last - j < KL_KEYS ? last - j : KL_KEYS, count = (left + ROWS - 1) / ROWS * ROWS;
        score(h, t, j, count, p);
        if (j + count > open)
            mask(t, j, count, p);
        soften(h, t, count, p, fade);
        gather(h, t, j, count, p, fade);
    }
    close_tile(h, t, row, rows);
}

// The head's tokens become neighbours of `depth` floats, and ROWS more of them; what is nobody's is zero.
static void pack(const head *h, float *to, const float *from)
{
    for (int64_t i = 0; i < h->keys + ROWS; i++) {
        const int64_t width = i < h->keys ? h->width : 0;
        memcpy(to + i * h->depth, from + i * h->stride, (size_t)width * sizeof *to);
        memset(to + i * h->depth + width, 0, (size_t)(h->depth - width) * sizeof *to);
    }
}

void fmha(const float *q, const float *k, const float *v, const int32_t *qo_offsets, const int32_t *kv_offsets,
          int32_t causal, float *output, float *packed_k, float *packed_v, float *query, float *sums,
          int32_t B, int32_t H, int32_t D, int32_t depth)
{
    const int64_t stride = (int64_t)H * D;
    const float   scale = 1.44269504f / sqrtf((float)D);
    for (int32_t b = 0; b < B; b++)
        for (int32_t n = 0; n < H; n++) {
            const int64_t row = qo_offsets[b] * stride + n * D, key = kv_offsets[b] * stride + n * D;
            const head h = {q + row, k + key, v + key, output + row, packed_k, packed_v,
                            qo_offsets[b + 1] - qo_offsets[b], kv_offsets[b + 1] - kv_offsets[b], causal, scale,
                            stride, D, depth};
            tile t = {.query = (vf *)query, .sums = (vf *)sums};
            pack(&h, packed_k, h.k);
            pack(&h, packed_v, h.v);
            for (int32_t i = 0; i < h.rows; i += QUERIES)
                attend(&h, &t, i);
        }
}
