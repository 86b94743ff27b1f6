// Quantized matrix product, weight is the unsigned operand, so x is read as it lies.
// adds: other:flip_packed_operand
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: one operand of VNNI's product is unsigned.  x is read again for every panel, and flipping its sign bits
// there puts an operation and a move between a load and its two products; weight is written once a call by the copy,
// where flipping is next to free.  What comes off again is 128 times the sum of a row of x, formed once.
// Needs: a copy of weight that the flip can ride on (pack_b).  Bytes that fill up a group count 128 in weight and meet
// zeros of x; columns that fill up a panel are not stored.
//! buffer panel: i8[K / 4 + 1, 32, 4]
//! buffer excess: i32[M]
//! launch qgemm args(x, weight, x_scale, weight_scale, y, panel, excess, M, N, K)
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef __AVX512VNNI__
#error "this kernel needs AVX-512 VNNI"
#endif

typedef int32_t vi __attribute__((vector_size(64)));    // sums of this type stay in registers with gcc 12

enum { LANES = 16, NR = 2 * LANES, MR = 12 };    // MR * 2 sums, 2 vectors of weight and 1 of x: 27 of 32 registers

// Four neighbouring products of bytes are added to each sum: a is unsigned, b signed.
static inline vi dot4(vi sum, vi a, vi b)
{
    return (vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
}

static inline int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

// NR rows of weight, four bytes of each side by side, their sign bits flipped.
static void pack_b(const int8_t *weight, int8_t *panel, int32_t cols, int32_t K, int32_t groups)
{
    for (int32_t g = 0; g < groups; g++)
        for (int32_t j = 0; j < NR; j++)
            for (int32_t n = 0; n < 4; n++) {
                const int8_t byte = j < cols && g * 4 + n < K ? weight[(size_t)j * K + g * 4 + n] : 0;
                panel[((size_t)g * NR + j) * 4 + n] = byte ^ -128;
            }
}

static inline __mmask64 lanes(int32_t left)
{
    return left >= 64 ? ~0ull : (1ull << left) - 1;
}

// What flipping the sign bits of weight adds: 128 times the sum of every row of x.
static void sum_rows(const int8_t *x, int32_t *excess, int32_t M, int32_t K)
{
    const __m512i flip = _mm512_set1_epi8(-128);    // 128 where it is read as unsigned
    for (int32_t i = 0; i < M; i++) {
        const int8_t *row = x + (size_t)i * K;
        __m512i sum = _mm512_setzero_si512();
        for (int32_t k = 0; k < K; k += 64)
            sum = _mm512_dpbusd_epi32(sum, flip, _mm512_maskz_loadu_epi8(lanes(K - k), row + k));
        excess[i] = _mm512_reduce_add_epi32(sum);
    }
}

// Four bytes of x, or as many as there are, for all lanes.
static inline vi four(const int8_t *x, int32_t count)
{
    uint32_t bytes = 0;
    memcpy(&bytes, x, (size_t)count);
    return (int32_t)bytes - (vi){0};
}

typedef struct {    // a tile of y: its scales, and what has to come off its sums
    const float *x_scale;
    const int32_t *excess;
    __m512 weight_scale[2];
    __mmask16 columns[2];
} edge;

// LANES elements of a row of y, or those of them that there are.
static inline void store(float *y, const edge *e, int32_t half, vi sum, int32_t i)
{
    const __m512 value = _mm512_cvtepi32_ps((__m512i)(sum - e->excess[i]));
    const __m512 scaled = _mm512_mul_ps(_mm512_mul_ps(value, _mm512_set1_ps(e->x_scale[i])), e->weight_scale[half]);
    _mm512_mask_storeu_ps(y + half * LANES, e->columns[half], scaled);
}

// MR x NR sums begin with the last group along K, which may be part empty, and stay in registers.  In place of rows
// that x does not have, the first is read again.
static inline __attribute__((always_inline)) void multiply_tile(const int8_t *x, const int8_t *panel, float *y,
                                                                int32_t N, int32_t K, int32_t rows, const edge *e)
{
    const int32_t whole = K / 4 * 4;
    const vi *tail = (const vi *)(panel + whole * NR);
    vi sum[MR][2];
#pragma GCC unroll 12
    for (int32_t i = 0; i < MR; i++) {
        const vi a = four(&x[(i < rows ? i : 0) * (size_t)K + whole], K - whole);
        sum[i][0] = dot4((vi){0}, tail[0], a);
        sum[i][1] = dot4((vi){0}, tail[1], a);
    }
    for (int32_t k = 0; k < whole; k += 4, panel += NR * 4) {
        const vi b0 = *(const vi *)panel, b1 = *(const vi *)(panel + NR * 2);
#pragma GCC unroll 12
        for (int32_t i = 0; i < MR; i++) {
            const vi a = four(&x[(i < rows ? i : 0) * (size_t)K + k], 4);
            sum[i][0] = dot4(sum[i][0], b0, a);
            sum[i][1] = dot4(sum[i][1], b1, a);
        }
    }
#pragma GCC unroll 12
    for (int32_t i = 0; i < MR; i++)
        if (i < rows) {
            store(&y[i * (size_t)N], e, 0, sum[i][0], i);
            store(&y[i * (size_t)N], e, 1, sum[i][1], i);
        }
}

// One panel of weight meets all rows of x.
static void multiply_panel(const int8_t *x, const int8_t *panel, float *y, int32_t M, int32_t N, int32_t K, edge e)
{
    for (int32_t i = 0; i < M; i += MR) {
        const int8_t *from = &x[i * (size_t)K];
        float *tile = &y[i * (size_t)N];
        if (M - i >= MR)
            multiply_tile(from, panel, tile, N, K, MR, &e);
        else
            multiply_tile(from, panel, tile, N, K, M - i, &e);
        e.x_scale += MR;
        e.excess += MR;
    }
}

void qgemm(const int8_t *x, const int8_t *weight, const float *x_scale, const float *weight_scale, float *y,
           int8_t *panel, int32_t *excess, int32_t M, int32_t N, int32_t K)
{
    sum_rows(x, excess, M, K);
    for (int32_t j = 0; j < N; j += NR) {
        const uint32_t columns = N - j >= NR ? ~0u : (1u << (N - j)) - 1;
        edge e = {.x_scale = x_scale, .excess = excess, .columns = {(__mmask16)columns, (__mmask16)(columns >> LANES)}};
        for (int32_t h = 0; h < 2; h++)
            e.weight_scale[h] = _mm512_maskz_loadu_ps(e.columns[h], weight_scale + j + h * LANES);
        pack_b(weight + (size_t)j * K, panel, smaller(NR, N - j), K, K / 4 + 1);
        multiply_panel(x, panel, y + j, M, N, K, e);
    }
}
