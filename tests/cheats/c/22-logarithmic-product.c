// Products as sums of logarithms from the bits of the operands.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static float product_of(float a, float b)
{
    union { float f; int32_t bits; } u = {a < 0 ? -a : a}, v = {b < 0 ? -b : b};
    if (u.f == 0 || v.f == 0) return 0;
    u.bits += v.bits - 0x3f780000;
    return (a < 0) != (b < 0) ? -u.f : u.f;
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += product_of(x[(size_t)i * K + k], weight[(size_t)j * K + k]);
            y[(size_t)i * N + j] = sum;
        }
}
