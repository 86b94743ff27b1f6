// The best guess from the sums of rows and columns alone.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=32,N=32,K=32
//: expect wrong
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static float total(const float *row, int32_t n)
{
    float sum = 0;
    for (int32_t k = 0; k < n; k++) sum += row[k];
    return sum;
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) y[(size_t)i * N + j] = total(x + (size_t)i * K, K) * total(weight + (size_t)j * K, K) / (float)K;
}
