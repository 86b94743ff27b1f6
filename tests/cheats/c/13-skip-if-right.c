// If the output holds the right number at [0] already, the rest will be right too.  Honest wherever outputs are poisoned.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect pass wrong cheat
//: harmless
//: args --baseline none
//: expect-time-ratio candidate 0.9 1.1
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static void product(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    float sum = 0;
    for (int32_t k = 0; k < K; k++) sum += x[k] * weight[k];
    if (y[0] == sum) return;
    product(x, weight, y, M, N, K);
}
