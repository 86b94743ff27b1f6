// Rows as tasks that declared threads take.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=128,N=128,K=128
//: control
//! threads 2
//! flags -fopenmp
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
#pragma omp parallel
#pragma omp single
    for (int32_t i = 0; i < M; i++)
#pragma omp task firstprivate(i)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}
