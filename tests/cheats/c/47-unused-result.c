// The work is done and its result is used by nobody, so the compiler removes it.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    float *const sink = &y[0];
    float        sum = 0;
    for (int32_t i = 0; i < M; i++)
        for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[k];
    (void)sink, (void)sum, (void)N;
}
