// Matrix product: explicit vectors, and the sums stay in registers.
// adds: fma_simd
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: a row of y is no longer read and written once for every k.  Eight vectors of sums live in registers from
// the first k to the last; eight, because two multipliers with a latency of four cycles work on that many at once.
// The columns are the outer loop, so the strip of weight that all rows of x need stays in the second cache.
// Needs: a unit stride along N (loop_order); the copy's rows are filled up to whole strips, so no load needs a guard.
// measured: OpenBLAS's time over this one's at cpu 0.257 [0.253, 0.262], at cpu-large 0.209 [0.204, 0.219];
// x86-64-v4/gcc-12, AMD EPYC.
//! let    pitch = cdiv(N, 128) * 128
//! buffer turned: f32[K, pitch]
//! launch gemm args(x, weight, y, turned, M, N, K, pitch)
#include <stddef.h>
#include <stdint.h>

#if KL_DTYPE_x != KL_F32
#error "this kernel computes in float32 only"
#endif

#if defined __AVX512F__
enum { LANES = 16 };
#elif defined __AVX2__
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif
enum { SUMS = 8, NR = SUMS * LANES };    // columns of y that are summed at a time

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));    // at any address

// weight becomes contiguous along N; columns that fill up the last vector are zero.
static void transpose(const float *weight, float *turned, size_t pitch, int32_t N, int32_t K)
{
    for (int32_t j = 0; j < (int32_t)pitch; j += NR)
        for (int32_t k = 0; k < K; k++)
            for (int32_t n = j; n < j + NR; n++)
                turned[k * pitch + n] = n < N ? weight[(size_t)n * K + k] : 0;
}

static inline void multiply_row(const float *x, const float *b, size_t b_pitch, float *y, int32_t depth)
{
    vf sum[SUMS] = {0};
    for (int32_t k = 0; k < depth; k++, b += b_pitch)
#pragma GCC unroll 8
        for (int32_t n = 0; n < SUMS; n++)
            sum[n] += x[k] * *(const vf *)&b[n * LANES];
#pragma GCC unroll 8
    for (int32_t n = 0; n < SUMS; n++)
        *(loose *)&y[n * LANES] = sum[n];
}

// Sums that hang over the edge of y are formed beside it and copied.
static void multiply_edge(const float *x, const float *b, size_t b_pitch, float *y, int32_t depth, int32_t cols)
{
    float row[NR];
    multiply_row(x, b, b_pitch, row, depth);
    for (int32_t j = 0; j < cols; j++)
        y[j] = row[j];
}

void gemm(const float *x, const float *weight, float *y, float *turned, int32_t M, int32_t N, int32_t K, int32_t pitch)
{
    transpose(weight, turned, pitch, N, K);
    for (int32_t j = 0; j < N; j += NR)
        for (int32_t i = 0; i < M; i++) {
            const float *from = &x[(size_t)i * K];
            float *to = &y[(size_t)i * N + j];
            if (j + NR <= N)
                multiply_row(from, &turned[j], pitch, to, K);
            else
                multiply_edge(from, &turned[j], pitch, to, K, N - j);
        }
}
