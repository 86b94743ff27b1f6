// Mutually recursive functions that return each other's result.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static float odd(const float *a, const float *b, int32_t n, float sum);
static float even(const float *a, const float *b, int32_t n, float sum) { return n == 0 ? sum : odd(a + 1, b + 1, n - 1, sum + *a * *b); }
static float odd(const float *a, const float *b, int32_t n, float sum) { return n == 0 ? sum : even(a + 1, b + 1, n - 1, sum + *a * *b); }

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) y[(size_t)i * N + j] = even(x + (size_t)i * K, weight + (size_t)j * K, K, 0);
}
