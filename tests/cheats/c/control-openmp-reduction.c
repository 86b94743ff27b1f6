// A reduction over threads with a critical section and a barrier.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=64,N=64,K=64
//: control
//! threads 2
//! flags -fopenmp
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (size_t e = 0; e < (size_t)M * N; e++) y[e] = 0;
#pragma omp parallel
    {
#pragma omp for collapse(2) schedule(guided)
        for (int32_t i = 0; i < M; i++)
            for (int32_t j = 0; j < N; j++) {
                float sum = 0;
                for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
#pragma omp critical
                y[(size_t)i * N + j] = sum;
            }
#pragma omp barrier
    }
}
