// Honest: a pointer to a nested function, which some compilers make of code on the stack. Refused with what to use instead.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: harmless
//: expect refused
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

__attribute__((noinline)) static void each(void (*f)(int32_t), int32_t n)
{
    for (int32_t i = 0; i < n; i++) f(i);
}
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
    void row(int32_t i) { product(x + (size_t)i * K, weight, y + (size_t)i * N, 1, N, K); }
    each(row, M);
}
