// Quantized matrix product: four rows of x times four rows of weight at a time.
// adds: register_block_simd
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: eight loads serve sixteen dot products instead of two serving one, and sixteen sums that do not wait for
// one another keep both multipliers busy.
// Needs: sums that stay in registers (dtype_dot).  In place of rows that are not there the last one is read again, and
// its results are not stored.
//! buffer excess: i32[N]
//! launch qgemm args(x, weight, x_scale, weight_scale, y, excess, M, N, K)
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#ifndef __AVX512VNNI__
#error "this kernel needs AVX-512 VNNI"
#endif

typedef int32_t vi __attribute__((vector_size(64)));    // sums of this type stay in registers with gcc 12

enum { STEP = 64, R = 4 };    // bytes of a vector; rows of a tile, of x and of weight

// Four neighbouring products of bytes are added to each sum: a is unsigned, b signed.
static inline vi dot4(vi sum, vi a, vi b)
{
    return (vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
}

static inline int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static inline __mmask64 lanes(int32_t left)
{
    return left >= STEP ? ~0ull : (1ull << left) - 1;
}

// excess[j]: what flipping the sign bits of a row of x adds to its product with row j of weight.
static void sum_rows(const int8_t *weight, int32_t *excess, int32_t N, int32_t K)
{
    const __m512i flip = _mm512_set1_epi8(-128);    // 128 where it is read as unsigned
    for (int32_t j = 0; j < N; j++) {
        const int8_t *row = weight + (size_t)j * K;
        __m512i sum = _mm512_setzero_si512();
        for (int32_t k = 0; k < K; k += STEP)
            sum = _mm512_dpbusd_epi32(sum, flip, _mm512_maskz_loadu_epi8(lanes(K - k), row + k));
        excess[j] = _mm512_reduce_add_epi32(sum);
    }
}

// STEP products of each of R rows of x with each of R rows of weight.
static inline __attribute__((always_inline)) void multiply_step(vi sum[R][R], const int8_t *const x[R],
                                                                const int8_t *const weight[R], int32_t k,
                                                                __mmask64 here)
{
    const __m512i flip = _mm512_set1_epi8(-128);
    vi a[R];
#pragma GCC unroll 4
    for (int32_t i = 0; i < R; i++)
        a[i] = (vi)_mm512_xor_si512(_mm512_maskz_loadu_epi8(here, x[i] + k), flip);
#pragma GCC unroll 4
    for (int32_t j = 0; j < R; j++) {
        const vi b = (vi)_mm512_maskz_loadu_epi8(here, weight[j] + k);
#pragma GCC unroll 4
        for (int32_t i = 0; i < R; i++)
            sum[i][j] = dot4(sum[i][j], a[i], b);
    }
}

static void multiply_tile(int32_t tile[R][R], const int8_t *const x[R], const int8_t *const weight[R], int32_t K)
{
    vi sum[R][R];
#pragma GCC unroll 16
    for (int32_t n = 0; n < R * R; n++)
        sum[n / R][n % R] = (vi){0};
    int32_t k = 0;
    for (; k + STEP <= K; k += STEP)
        multiply_step(sum, x, weight, k, ~0ull);
    if (k < K)
        multiply_step(sum, x, weight, k, lanes(K - k));
#pragma GCC unroll 16
    for (int32_t n = 0; n < R * R; n++)
        tile[n / R][n % R] = _mm512_reduce_add_epi32((__m512i)sum[n / R][n % R]);
}

void qgemm(const int8_t *x, const int8_t *weight, const float *x_scale, const float *weight_scale, float *y,
           int32_t *excess, int32_t M, int32_t N, int32_t K)
{
    sum_rows(weight, excess, N, K);
    for (int32_t j0 = 0; j0 < N; j0 += R)
        for (int32_t i0 = 0; i0 < M; i0 += R) {
            const int8_t *rows[R], *columns[R];
            int32_t tile[R][R];
            for (int32_t n = 0; n < R; n++) {
                rows[n] = x + (size_t)smaller(i0 + n, M - 1) * K;
                columns[n] = weight + (size_t)smaller(j0 + n, N - 1) * K;
            }
            multiply_tile(tile, rows, columns, K);
            for (int32_t i = i0; i < smaller(i0 + R, M); i++)
                for (int32_t j = j0; j < smaller(j0 + R, N); j++)
                    y[(size_t)i * N + j] = (float)(tile[i - i0][j - j0] - excess[j]) * x_scale[i] * weight_scale[j];
        }
}
