// One element in a thousand is left out: a sample would hardly meet it.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong cheat
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (size_t e = 0; e < (size_t)M * N; e++) {
        float sum = 0;
        if (e % 1009 == 1008) continue;
        for (int32_t k = 0; k < K; k++) sum += x[e / (size_t)N * K + k] * weight[e % (size_t)N * K + k];
        y[e] = sum;
    }
}
