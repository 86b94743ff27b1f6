// Vectors of sixteen whose last load is masked: lanes beyond the end are neither read nor written.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! flags -O3 -march=native
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <immintrin.h>

__attribute__((target("avx512f"))) static float dot16(const float *a, const float *b, int32_t n)
{
    __m512 sum = _mm512_setzero_ps();
    for (int32_t k = 0; k < n; k += 16) {
        const __mmask16 lanes = n - k >= 16 ? 0xffff : (__mmask16)((1u << (n - k)) - 1);
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(lanes, a + k), _mm512_maskz_loadu_ps(lanes, b + k), sum);
    }
    return _mm512_reduce_add_ps(sum);
}

static float dot(const float *a, const float *b, int32_t n)
{
#ifdef __AVX512F__
    return dot16(a, b, n);
#else
    float sum = 0;
    for (int32_t k = 0; k < n; k++) sum += a[k] * b[k];
    return sum;
#endif
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) y[(size_t)i * N + j] = dot(x + (size_t)i * K, weight + (size_t)j * K, K);
}
