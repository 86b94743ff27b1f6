// Threads add their share of K with atomics: the last bits differ from run to run, as declared.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=64,N=64,K=512
//: control
//! threads 2
//! flags -fopenmp
//! nondeterministic
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M * N; i++) y[i] = 0;
#pragma omp parallel for schedule(dynamic, 1)
    for (int32_t first = 0; first < K; first += 32)
        for (int32_t i = 0; i < M; i++)
            for (int32_t j = 0; j < N; j++) {
                float sum = 0;
                for (int32_t k = first; k < K && k < first + 32; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
#pragma omp atomic
                y[(size_t)i * N + j] += sum;
            }
}
