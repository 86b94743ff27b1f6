// Honest: the compiler makes versions for several processors, and a resolver chooses. Refused with what to use instead.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: harmless
//: expect refused
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

__attribute__((target_clones("avx512f", "avx2", "default")))
void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}
