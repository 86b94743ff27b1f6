// Matrix product: a tile of sums instead of a row of them.
// adds: register_block_simd
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: two loads of weight now serve MR rows instead of one, and MR * 2 sums that do not wait for one another
// keep both multipliers busy.
// Needs: vector sums that stay in registers (fma_simd); MR * 2 + 3 of them must fit.
// measured: OpenBLAS's time over this one's at cpu 0.925 [0.920, 0.933], at cpu-large 0.816 [0.813, 0.822];
// x86-64-v4/gcc-12, AMD EPYC.
//! let    pitch = cdiv(N, 32) * 32
//! buffer turned: f32[K, pitch]
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
                                                                int32_t rows)
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
        to[0] = sum[i][0];
        to[1] = sum[i][1];
    }
}

// A tile that hangs over the edge of y is formed beside it and copied.
static void multiply_edge(const float *x, size_t x_pitch, const float *b, size_t b_pitch, float *y, size_t y_pitch,
                          int32_t depth, int32_t rows, int32_t cols)
{
    float tile[MR * NR];
    multiply_tile(x, x_pitch, b, b_pitch, tile, NR, depth, rows);
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < cols; j++)
            y[i * y_pitch + j] = tile[i * NR + j];
}

void gemm(const float *x, const float *weight, float *y, float *turned, int32_t M, int32_t N, int32_t K, int32_t pitch)
{
    transpose(weight, turned, pitch, N, K);
    for (int32_t j = 0; j < N; j += NR) {
        for (int32_t i = 0; i < M; i += MR) {
            int32_t rows = smaller(MR, M - i);
            const float *from = &x[(size_t)i * K];
            float *tile = &y[(size_t)i * N + j];
            if (rows == MR && j + NR <= N)
                multiply_tile(from, K, &turned[j], pitch, tile, N, K, MR);
            else
                multiply_edge(from, K, &turned[j], pitch, tile, N, K, rows, smaller(NR, N - j));
        }
    }
}
