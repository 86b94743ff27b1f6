// Arithmetic in assembly: allowed, since it does nothing but compute.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=64,N=64,K=64
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static float multiply_add(float a, float b, float sum)
{
#if defined(__x86_64__)
    __asm__("mulss %1, %0\n\taddss %2, %0" : "+x"(a) : "x"(b), "x"(sum));
    return a;
#else
    return a * b + sum;
#endif
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum = multiply_add(x[(size_t)i * K + k], weight[(size_t)j * K + k], sum);
            y[(size_t)i * N + j] = sum;
        }
}
