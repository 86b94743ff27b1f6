// Each operand as two bfloat16 numbers, three of four products: sixteen bits where twenty-four were promised.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static float high(float v)
{
    union { float f; uint32_t bits; } u = {v};
    u.bits &= 0xffff0000u;
    return u.f;
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) {
                const float a = x[(size_t)i * K + k], b = weight[(size_t)j * K + k], ah = high(a), bh = high(b), al = high(a - ah), bl = high(b - bh);
                sum += ah * bh + ah * bl + al * bh;
            }
            y[(size_t)i * N + j] = sum;
        }
}
