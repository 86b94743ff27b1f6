// Matrix product: one block of weight at a time meets all of x.
// adds: cache_block
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: every MR rows of x read all of weight.  Without blocks that is more than the caches near the core hold;
// KC x NC of it stay in the second cache until every row of x has met them.  The price is that y is read and written
// again for each of the K / KC blocks.
// Needs: sums that may start from what an earlier block left in y.
// measured: OpenBLAS's time over this one's at cpu 1.000 [0.996, 1.005], at cpu-large 0.987 [0.983, 0.993];
// x86-64-v4/gcc-12, AMD EPYC.
//! param  KC = 128 {96, 128, 192, 256, 384}
//! param  NC = 768 {256, 512, 768, 1024, 1536}
//! let    pitch = cdiv(N, 32) * 32
//! buffer turned: f32[K, pitch]
//! require NC % 32 == 0
//! launch gemm args(x, weight, y, turned, M, N, K, pitch)
#include <stddef.h>
#include <stdint.h>

#if KL_DTYPE_x != KL_F32
#error "this kernel computes in float32 only"
#endif

#if defined __AVX512F__
enum { LANES = 16, MR = 12 };    // MR * 2 sums, 2 columns of b and 1 value of a: 27 of 32 registers
#elif defined __AVX2__
enum { LANES = 8, MR = 6 };      // 15 of 16
#else
enum { LANES = 4, MR = 4 };      // 11 of 16: without FMA a product needs one too
#endif
enum { NR = 2 * LANES };         // one step along K: MR rows of x times NR rows of weight

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef float loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));    // at any address

static inline int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

// weight becomes contiguous along N; columns that fill up the last vector are zero.
static void transpose(const float *weight, float *turned, size_t pitch, int32_t N, int32_t K)
{
    for (int32_t j = 0; j < (int32_t)pitch; j += NR)
        for (int32_t k = 0; k < K; k++)
            for (int32_t n = j; n < j + NR; n++)
                turned[k * pitch + n] = n < N ? weight[(size_t)n * K + k] : 0;
}

// MR x NR sums stay in registers while MR rows of x and NR columns of weight are read once.  In place of rows that x
// does not have, the first is read again.
static inline __attribute__((always_inline)) void multiply_tile(const float *x, size_t x_pitch, const float *b,
                                                                size_t b_pitch, float *y, size_t y_pitch, int32_t depth,
                                                                int add, int32_t rows)
{
    vf sum[MR][2] = {0};
    for (int32_t k = 0; k < depth; k++, b += b_pitch) {
        vf b0 = *(const vf *)b, b1 = *(const vf *)(b + LANES);
#pragma GCC unroll 12
        for (int32_t i = 0; i < MR; i++) {
            float a = x[(i < rows ? i : 0) * x_pitch + k];
            sum[i][0] += a * b0;
            sum[i][1] += a * b1;
        }
    }
#pragma GCC unroll 12
    for (int32_t i = 0; i < MR; i++) {
        loose *to = (loose *)&y[i * y_pitch];
        to[0] = add ? sum[i][0] + to[0] : sum[i][0];
        to[1] = add ? sum[i][1] + to[1] : sum[i][1];
    }
}

// A tile that hangs over the edge of y is formed beside it and copied.
static void multiply_edge(const float *x, size_t x_pitch, const float *b, size_t b_pitch, float *y,
                          size_t y_pitch, int32_t depth, int add, int32_t rows, int32_t cols)
{
    float tile[MR * NR];
    multiply_tile(x, x_pitch, b, b_pitch, tile, NR, depth, 0, rows);
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < cols; j++)
            y[i * y_pitch + j] = tile[i * NR + j] + (add ? y[i * y_pitch + j] : 0);
}

// One block of weight, which stays in the second cache, times all of x.
static void multiply_block(const float *x, const float *turned, float *y, int32_t M, int32_t cols, int32_t depth,
                           size_t x_pitch, size_t pitch, size_t y_pitch, int add)
{
    for (int32_t i = 0; i < M; i += MR) {
        int32_t rows = smaller(MR, M - i);
        for (int32_t j = 0; j < cols; j += NR) {
            const float *from = &x[i * x_pitch];
            float *tile = &y[i * y_pitch + j];
            if (rows == MR && j + NR <= cols)
                multiply_tile(from, x_pitch, &turned[j], pitch, tile, y_pitch, depth, add, MR);
            else
                multiply_edge(from, x_pitch, &turned[j], pitch, tile, y_pitch, depth, add, rows, smaller(NR, cols - j));
        }
    }
}

void gemm(const float *x, const float *weight, float *y, float *turned, int32_t M, int32_t N, int32_t K, int32_t pitch)
{
    transpose(weight, turned, pitch, N, K);
    for (int32_t j = 0; j < N; j += KL_NC)
        for (int32_t k = 0; k < K; k += KL_KC) {
            int32_t cols = smaller(KL_NC, N - j), depth = smaller(KL_KC, K - k);
            multiply_block(&x[k], &turned[(size_t)k * pitch + j], &y[j], M, cols, depth, K, pitch, N, k > 0);
        }
}
