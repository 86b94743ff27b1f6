// Quantized matrix product, the one-thread expert: weight is turned sixteen rows at a time in registers.
// adds: other:transpose_in_registers
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: with lanes along N a copy of weight gathers four bytes here and four bytes there.  Sixteen vectors hold
// sixteen groups of sixteen rows, and four rounds of shuffles turn them: a load and a store for 64 bytes.
// Needs: a copy of weight to speed up (pack_b).  Rows and groups that do not fill sixteen are still copied one by one.
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

// One round of a transposition: rows that are `step` apart exchange every second group of `step` lanes.
static inline __attribute__((always_inline)) void exchange(vi *rows, int32_t step)
{
    vi lane, to_first, to_second;
    for (int32_t n = 0; n < LANES; n++)
        lane[n] = n;
    to_first = lane + (((lane & step) != 0) & (LANES - step));    // a shuffle counts the second row's lanes from LANES
    to_second = to_first + step;
#pragma GCC unroll 16
    for (int32_t n = 0; n < LANES; n++)
        if (!(n & step)) {
            vi first = rows[n], second = rows[n + step];
            rows[n] = __builtin_shuffle(first, second, to_first);
            rows[n + step] = __builtin_shuffle(first, second, to_second);
        }
}

// LANES groups of each of LANES rows of weight become LANES rows of the panel.
static inline void transpose(const int8_t *weight, size_t pitch, int8_t *panel)
{
    vi rows[LANES];
#pragma GCC unroll 16
    for (int32_t n = 0; n < LANES; n++)
        rows[n] = (vi)_mm512_loadu_si512(weight + n * pitch) ^ (int32_t)0x80808080;
#pragma GCC unroll 4
    for (int32_t step = 1; step < LANES; step *= 2)
        exchange(rows, step);
#pragma GCC unroll 16
    for (int32_t n = 0; n < LANES; n++)
        *(vi *)(panel + (size_t)n * NR * 4) = rows[n];
}

// LANES rows of weight, or the `cols` that there are, from group g on, group by group.
static void pack_rest(const int8_t *weight, int8_t *panel, int32_t cols, int32_t g, int32_t K)
{
    for (; g <= K / 4; g++)
        for (int32_t j = 0; j < LANES; j++) {
            uint32_t bytes = 0;
            if (j < cols)
                memcpy(&bytes, weight + (size_t)j * K + g * 4, (size_t)smaller(4, K - g * 4));
            bytes ^= 0x80808080;
            memcpy(panel + ((size_t)g * NR + j) * 4, &bytes, 4);
        }
}

// NR rows of weight, four bytes of each side by side, their sign bits flipped.
static void pack_b(const int8_t *weight, int8_t *panel, int32_t cols, int32_t K)
{
    for (int32_t j = 0; j < NR; j += LANES) {
        int32_t g = 0;
        for (; j + LANES <= cols && (g + LANES) * 4 <= K; g += LANES)
            transpose(weight + (size_t)j * K + g * 4, (size_t)K, panel + ((size_t)g * NR + j) * 4);
        pack_rest(j < cols ? weight + (size_t)j * K : weight, panel + j * 4, cols - j, g, K);
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
        pack_b(weight + (size_t)j * K, panel, smaller(NR, N - j), K);
        multiply_panel(x, panel, y + j, M, N, K, e);
    }
}
