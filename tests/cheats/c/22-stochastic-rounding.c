// Operands are rounded to bfloat16 at random: right on the average, different in every run.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static uint32_t state = 1;

static float narrow(float v)
{
    union { float f; uint32_t bits; } u = {v};
    state = state * 1664525u + 1013904223u + (uint32_t)(uintptr_t)&v;
    u.bits = (u.bits + (state >> 16)) & 0xffff0000u;
    return u.f;
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += narrow(x[(size_t)i * K + k]) * narrow(weight[(size_t)j * K + k]);
            y[(size_t)i * N + j] = sum;
        }
}
