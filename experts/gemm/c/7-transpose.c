// Matrix product: weight is turned in registers on its way into the panels.
// adds: other:transpose_in_registers
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: weight is contiguous along K, its panels along N.  Value by value that is one load and one store each; a
// square of LANES x LANES takes LANES loads, LANES stores and log2(LANES) rounds of shuffles.
// Needs: panels (pack_b) or another copy that changes the layout; what does not fill a square goes value by value.
// measured: OpenBLAS's time over this one's at cpu 1.040 [1.034, 1.043], at cpu-large 1.019 [1.015, 1.023];
// x86-64-v4/gcc-12, AMD EPYC.
//! param  KC = 128 {96, 128, 192, 256, 384}
//! param  NC = 768 {256, 512, 768, 1024, 1536}
//! buffer b_block: f32[KC, NC]
//! require NC % 32 == 0
//! launch gemm args(x, weight, y, b_block, M, N, K)
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

typedef float   vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));
typedef float   loose __attribute__((vector_size(4 * LANES), aligned(4), may_alias));    // at any address

static inline int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

// One round of a transposition: rows that are `step` apart exchange every second group of `step` lanes.
static inline __attribute__((always_inline)) void exchange(vf *rows, int32_t step)
{
    vi lane, to_first, to_second;
    for (int32_t n = 0; n < LANES; n++)
        lane[n] = n;
    to_first = lane + (((lane & step) != 0) & (LANES - step));    // a shuffle counts the second row's lanes from LANES
    to_second = to_first + step;
#pragma GCC unroll 16
    for (int32_t n = 0; n < LANES; n++)
        if (!(n & step)) {
            vf first = rows[n], second = rows[n + step];
            rows[n] = __builtin_shuffle(first, second, to_first);
            rows[n + step] = __builtin_shuffle(first, second, to_second);
        }
}

// LANES x LANES values of weight, contiguous along K, become rows that are contiguous along N.
static inline void transpose(const float *weight, size_t pitch, float *panel)
{
    vf rows[LANES];
#pragma GCC unroll 16
    for (int32_t n = 0; n < LANES; n++)
        rows[n] = *(const loose *)&weight[n * pitch];
#pragma GCC unroll 4
    for (int32_t step = 1; step < LANES; step *= 2)
        exchange(rows, step);
#pragma GCC unroll 16
    for (int32_t n = 0; n < LANES; n++)
        *(vf *)&panel[n * NR] = rows[n];
}

// A block of weight as panels of NR columns, each contiguous along K; missing columns are zero.
static void pack_b(const float *weight, size_t pitch, float *block, int32_t cols, int32_t depth)
{
    for (int32_t j = 0; j < cols; j += LANES) {
        float *panel = block + (size_t)(j / NR) * NR * depth + j % NR;
        int32_t k = 0;
        for (; j + LANES <= cols && k + LANES <= depth; k += LANES)
            transpose(&weight[j * pitch + k], pitch, &panel[k * NR]);
        for (; k < depth; k++)
            for (int32_t n = 0; n < LANES; n++)
                panel[k * NR + n] = j + n < cols ? weight[(j + n) * pitch + k] : 0;
    }
}

// MR x NR sums stay in registers while MR rows of x and a panel of weight are read once.  In place of rows that x does
// not have, the first is read again.
static inline __attribute__((always_inline)) void multiply_tile(const float *x, size_t x_pitch, const float *b,
                                                                float *y, size_t y_pitch, int32_t depth, int add,
                                                                int32_t rows)
{
    vf sum[MR][2] = {0};
    for (int32_t k = 0; k < depth; k++, b += NR) {
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
static void multiply_edge(const float *x, size_t x_pitch, const float *b, float *y, size_t y_pitch, int32_t depth,
                          int add, int32_t rows, int32_t cols)
{
    float tile[MR * NR];
    multiply_tile(x, x_pitch, b, tile, NR, depth, 0, rows);
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < cols; j++)
            y[i * y_pitch + j] = tile[i * NR + j] + (add ? y[i * y_pitch + j] : 0);
}

// One block of weight, which stays in the second cache, times all of x.
static void multiply_block(const float *x, const float *b_block, float *y, int32_t M, int32_t cols, int32_t depth,
                           size_t x_pitch, size_t y_pitch, int add)
{
    for (int32_t i = 0; i < M; i += MR) {
        int32_t rows = smaller(MR, M - i);
        for (int32_t j = 0; j < cols; j += NR) {
            const float *panel = b_block + (size_t)j * depth;
            float *tile = &y[i * y_pitch + j];
            if (rows == MR && j + NR <= cols)
                multiply_tile(&x[i * x_pitch], x_pitch, panel, tile, y_pitch, depth, add, MR);
            else
                multiply_edge(&x[i * x_pitch], x_pitch, panel, tile, y_pitch, depth, add, rows, smaller(NR, cols - j));
        }
    }
}

void gemm(const float *x, const float *weight, float *y, float *b_block, int32_t M, int32_t N, int32_t K)
{
    for (int32_t j = 0; j < N; j += KL_NC)
        for (int32_t k = 0; k < K; k += KL_KC) {
            int32_t cols = smaller(KL_NC, N - j), depth = smaller(KL_KC, K - k);
            pack_b(&weight[(size_t)j * K + k], K, b_block, cols, depth);
            multiply_block(&x[k], b_block, &y[j], M, cols, depth, K, N, k > 0);
        }
}
