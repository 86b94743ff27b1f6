// Two threads add to the same elements without a lock.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong
//! threads 2
//! flags -fopenmp
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M * N; i++) y[i] = 0;
#pragma omp parallel for num_threads(2) schedule(static, 1)
    for (int32_t k = 0; k < K; k++)
        for (int32_t i = 0; i < M; i++)
            for (int32_t j = 0; j < N; j++) ((volatile float *)y)[(size_t)i * N + j] += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
}
