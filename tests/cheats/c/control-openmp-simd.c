// Vector reduction by pragma, without threads.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! flags -O3 -march=native -fopenmp-simd
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            const float *a = x + (size_t)i * K, *b = weight + (size_t)j * K;
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int32_t k = 0; k < K; k++) sum += a[k] * b[k];
            y[(size_t)i * N + j] = sum;
        }
}
