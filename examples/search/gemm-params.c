// Matrix product with the blocking of a good one and the numbers of a bad one: a start for searches that know nothing.
//
// Five numbers decide how fast it is, and none of them matters much while the others are wrong: rows and columns of y that stay in
// registers (MR, NR), how much of the sum is formed at a time (KC), and how much of weight and of x stay in a cache meanwhile (NC, MC).
// As it stands one row and eight columns are formed at a time, in blocks far too small for the work of copying them.
// Used by bench/search.py.  float32 alone.  SPDX-License-Identifier: Apache-2.0
//! param  MR = 1 {1, 2, 3, 4, 6, 8, 12}
//! param  NR = 8 {8, 16, 32, 48, 64}
//! param  KC = 8 {8, 32, 64, 128, 256, 384}
//! param  NC = 192 {192, 384, 576, 768, 1536}
//! param  MC = 12 {12, 24, 48, 96, 192, 768}
//! buffer packed: f32[KC, NC]
//! require NC % NR == 0
//! launch gemm args(x, weight, y, packed, M, N, K)
#include <stddef.h>
#include <stdint.h>

#if KL_DTYPE_x != KL_F32
#error "this kernel computes in float32 only"
#endif

enum { MR = KL_MR, NR = KL_NR, KC = KL_KC, NC = KL_NC, MC = KL_MC };

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

// A block of weight, turned: NR columns side by side for each step of the sum.  Columns that weight does not have are zero.
static void pack(const float *weight, float *packed, int32_t K, int32_t depth, int32_t cols)
{
    for (int32_t j = 0; j < NC; j += NR)
        for (int32_t k = 0; k < depth; k++)
            for (int32_t c = 0; c < NR; c++)
                packed[(size_t)j * KC + (size_t)k * NR + c] = j + c < cols ? weight[(size_t)(j + c) * K + k] : 0;
}

// MR x NR of y; `rows` and `cols` of it are there.  In place of rows that x does not have, the first is read again.
static void multiply_tile(const float *x, const float *packed, float *y, int32_t N, int32_t K, int32_t depth, int32_t rows, int32_t cols, int add)
{
    float sum[MR][NR] = {0};
    for (int32_t k = 0; k < depth; k++)
        for (int32_t r = 0; r < MR; r++)
            for (int32_t c = 0; c < NR; c++)
                sum[r][c] += x[(size_t)(r < rows ? r : 0) * K + k] * packed[(size_t)k * NR + c];
    for (int32_t r = 0; r < rows; r++)
        for (int32_t c = 0; c < cols; c++)
            y[(size_t)r * N + c] = sum[r][c] + (add ? y[(size_t)r * N + c] : 0);
}

// Rows [0, rows) of x times a packed block.
static void multiply_block(const float *x, const float *packed, float *y, int32_t rows, int32_t N, int32_t K, int32_t depth, int32_t cols, int add)
{
    for (int32_t j = 0; j < cols; j += NR)
        for (int32_t i = 0; i < rows; i += MR)
            multiply_tile(&x[(size_t)i * K], &packed[(size_t)j * KC], &y[(size_t)i * N + j], N, K, depth, smaller(MR, rows - i),
                          smaller(NR, cols - j), add);
}

void gemm(const float *x, const float *weight, float *y, float *packed, int32_t M, int32_t N, int32_t K)
{
    for (int32_t j = 0; j < N; j += NC)
        for (int32_t k = 0; k < K; k += KC) {
            int32_t depth = smaller(KC, K - k), cols = smaller(NC, N - j);
            pack(&weight[(size_t)j * K + k], packed, K, depth, cols);
            for (int32_t i = 0; i < M; i += MC)
                multiply_block(&x[(size_t)i * K + k], packed, &y[(size_t)i * N + j], smaller(MC, M - i), N, K, depth, cols, k > 0);
        }
}
