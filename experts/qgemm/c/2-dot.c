// Quantized matrix product: 64 products of bytes and their sums in one instruction.
// adds: dtype_dot
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: VNNI multiplies bytes as bytes and adds four neighbouring products to a 32-bit sum; nothing is widened.
// Its left operand is unsigned, so 128 is added to every x (a flipped sign bit) and 128 times the sum of weight's row
// is taken off again.  The sums of the rows of weight are formed once.
// Needs: AVX-512 VNNI.  Only the result has to fit 32 bits: sums that are too large by 128 times a row of weight wrap,
// and wrap back.  A tail along K is loaded under a mask: what is not there counts as zero in weight.
//! buffer excess: i32[N]
//! launch qgemm args(x, weight, x_scale, weight_scale, y, excess, M, N, K)
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#ifndef __AVX512VNNI__
#error "this kernel needs AVX-512 VNNI"
#endif

enum { STEP = 64 };    // bytes of a vector

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

static int32_t dot(const int8_t *x, const int8_t *weight, int32_t K)
{
    const __m512i flip = _mm512_set1_epi8(-128);
    __m512i sum = _mm512_setzero_si512();
    for (int32_t k = 0; k < K; k += STEP) {
        const __mmask64 here = lanes(K - k);
        const __m512i a = _mm512_xor_si512(_mm512_maskz_loadu_epi8(here, x + k), flip);
        sum = _mm512_dpbusd_epi32(sum, a, _mm512_maskz_loadu_epi8(here, weight + k));
    }
    return _mm512_reduce_add_epi32(sum);
}

void qgemm(const int8_t *x, const int8_t *weight, const float *x_scale, const float *weight_scale, float *y,
           int32_t *excess, int32_t M, int32_t N, int32_t K)
{
    sum_rows(weight, excess, N, K);
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            const int32_t sum = dot(x + (size_t)i * K, weight + (size_t)j * K, K) - excess[j];
            y[(size_t)i * N + j] = (float)sum * x_scale[i] * weight_scale[j];
        }
}
