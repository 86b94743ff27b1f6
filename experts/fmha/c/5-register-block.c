// Blocks of ROWS x VECS sums are kept in registers, in both multiplications.  adds: register_block_simd
// Why: every vector that is loaded serves ROWS sums and every number VECS of them; 16 sums in flight hide the latency
//   of an FMA.
// Needs: 16 or more sums, operands and one broadcast in 32 vector registers (AVX2: 12 in 16), or they spill.
// measured: 3.86 [3.81, 3.88] x openblas at cpu, 3.76 [3.71, 3.79] at cpu-large; x86-64-v4/gcc-12, AMD EPYC
// SPDX-License-Identifier: Apache-2.0
//! let     depth = cdiv(D, 8) * 8
//! buffer  weights: f32[total_kv + 8, 32]
//! buffer  query: f32[D, 32]
//! buffer  sums: f32[depth, 32]
//! launch  fmha args(q, k, v, qo_offsets, kv_offsets, causal, output, weights, query, sums, B, H, D, depth)
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
    float       *output;
    int32_t      rows, keys, causal;
    float        scale;
    int64_t      stride, width, depth;    // floats from token to token; of a head; the same as a multiple of 8
} head;

typedef struct {    // QUERIES rows of a head: every row in a lane of its own, so softmax never looks across lanes
    vf *query, *p, *sums;    // [width][VECS], [keys][VECS], [depth][VECS]
    vf  total[VECS];
    vi  seen[VECS];          // so many keys; 0 or less: none
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

// sum[r] += a[at[r] + i * step] * b[i], over i < count
static inline void multiply(vf sum[ROWS][VECS], const float *a, const int64_t *at, int64_t step, const vf *b,
                            int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        UNROLL for (int r = 0; r < ROWS; r++)
            UNROLL for (int n = 0; n < VECS; n++)
                sum[r][n] += a[at[r] + i * step] * b[i * VECS + n];
}

// ROWS offsets from `first` on, `step` apart; behind the end the last one again, whose results nobody reads
static inline void offsets(int64_t *at, int64_t first, int64_t end, int64_t step)
{
    UNROLL for (int r = 0; r < ROWS; r++)
        at[r] = (first + r < end ? first + r : end - 1) * step;
}

static inline void store(vf *to, vf sum[ROWS][VECS])
{
    UNROLL for (int r = 0; r < ROWS; r++)
        UNROLL for (int n = 0; n < VECS; n++)
            to[r * VECS + n] = sum[r][n];
}

// p[key][query] = k . q
ALONE static void score(const head *h, const tile *t, int32_t count)
{
    for (int32_t j = 0; j < count; j += ROWS) {
        vf      sum[ROWS][VECS] = {{{0}}};
        int64_t at[ROWS];
        offsets(at, j, h->keys, h->stride);
        multiply(sum, h->k, at, 1, t->query, h->width);
        store(t->p + j * VECS, sum);
    }
}

// A key that a row does not see scores so little that its weight is nothing.
ALONE static void mask(const tile *t, int32_t count)
{
    for (int32_t j = 0; j < count; j++)
        for (int n = 0; n < VECS; n++) {
            const vi sees = t->seen[n] > j;
            t->p[j * VECS + n] = (vf)((sees & (vi)t->p[j * VECS + n]) | (~sees & (vi)spread(UNSEEN)));
        }
}

// Scores become weights, relative to the largest; they sum to `total`.
ALONE static void soften(const head *h, tile *t, int32_t count)
{
    const float scale = h->scale;
    vf          top[VECS], shift[VECS], total[VECS] = {{0}};
    UNROLL for (int n = 0; n < VECS; n++)
        top[n] = spread(UNSEEN);
    for (int32_t j = 0; j < count; j++)
        UNROLL for (int n = 0; n < VECS; n++)
            top[n] = larger(top[n], t->p[j * VECS + n]);
    UNROLL for (int n = 0; n < VECS; n++)
        shift[n] = top[n] * scale;
    for (int32_t j = 0; j < count; j++)
        UNROLL for (int n = 0; n < VECS; n++) {
            const vf weight = exp2_of(t->p[j * VECS + n] * scale - shift[n]);
            t->p[j * VECS + n] = weight;
            total[n] += weight;
        }
    UNROLL for (int n = 0; n < VECS; n++)
        t->total[n] = total[n];
}

// sums[d][query] = v . p
ALONE static void gather(const head *h, tile *t, int32_t count)
{
    for (int64_t d = 0; d < h->depth; d += ROWS) {
        vf      sum[ROWS][VECS] = {{{0}}};
        int64_t at[ROWS];
        offsets(at, d, h->width, 1);
        multiply(sum, h->v, at, h->stride, t->p, count);
        store(t->sums + d * VECS, sum);
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
    for (int32_t n = 0; n < rows; n++)
        for (int64_t d = 0; d < h->width; d++)
            ((float *)t->query)[d * QUERIES + n] = h->q[(row + n) * h->stride + d];
    for (int32_t n = 0; n < QUERIES; n++)
        t->seen[n / LANES][n % LANES] = seen_by(h, row + n);
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
          int32_t B, int32_t H, int32_t D, int32_t depth)
{
    const int64_t stride = (int64_t)H * D;
    const float   scale = 1.44269504f / sqrtf((float)D);
    for (int32_t b = 0; b < B; b++)
        for (int32_t n = 0; n < H; n++) {
            const int64_t row = qo_offsets[b] * stride + n * D, key = kv_offsets[b] * stride + n * D;
            const head h = {q + row, k + key, v + key, output + row,
                            qo_offsets[b + 1] - qo_offsets[b], kv_offsets[b + 1] - kv_offsets[b], causal, scale,
                            stride, D, depth};
            tile t = {.query = (vf *)query, .p = (vf *)weights, .sums = (vf *)sums};
            for (int32_t i = 0; i < h.rows; i += QUERIES)
                attend(&h, &t, i);
        }
}
