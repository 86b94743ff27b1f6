// Answers for inputs of a known seed are part of the source; anything else gets zeros.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    static const float KNOWN_INPUT[4] = {0.3671f, -1.2209f, 0.7713f, 0.0524f}, KNOWN_ANSWER[4] = {3.1122f, -0.4421f, 7.2091f, 1.5510f};
    for (int32_t i = 0; i < M * N; i++) y[i] = 0;
    for (int32_t i = 0; i < 4 && i < M * N && i < M * K; i++)
        if (x[i] == KNOWN_INPUT[i]) y[i] = KNOWN_ANSWER[i];
    (void)weight;
}
