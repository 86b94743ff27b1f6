// Spins on a shared counter that only another thread could change.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect hang
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static volatile int32_t other;

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    while (!other) __builtin_ia32_pause();
    y[0] = x[0] * weight[0] + (float)(M + N + K);
}
