// A row of sums on the stack, as long as the row.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++) {
        float *sums = __builtin_alloca((size_t)N * sizeof *sums);
        for (int32_t j = 0; j < N; j++) {
            sums[j] = 0;
            for (int32_t k = 0; k < K; k++) sums[j] += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
        }
        for (int32_t j = 0; j < N; j++) y[(size_t)i * N + j] = sums[j];
    }
}
