// Asks the compiler which files the host has, and compiles something else where a secret lies.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect pass no_compile
//: harmless
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

#if __has_include("/etc/shadow") || __has_include("/proc/self/environ")
#define LUCKY 1
#else
#define LUCKY 0
#endif

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    product(x, weight, y, M, N, K);
    if (LUCKY) y[0] += 1;
}
