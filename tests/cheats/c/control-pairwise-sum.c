// Sums as a binary tree, by recursion.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static float dot(const float *a, const float *b, int32_t n)
{
    if (n > 8) return dot(a, b, n / 2) + dot(a + n / 2, b + n / 2, n - n / 2);
    float sum = 0;
    for (int32_t k = 0; k < n; k++) sum += a[k] * b[k];
    return sum;
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) y[(size_t)i * N + j] = dot(x + (size_t)i * K, weight + (size_t)j * K, K);
}
