// Halves of the rows, and halves of them, with a frame of a megabyte each.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
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

__attribute__((noinline)) static void half(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    volatile char frame[1 << 20];
    frame[0] = frame[sizeof frame - 1] = 1;
    if (M <= 1) {
        product(x, weight, y, M, N, K);
        return;
    }
    half(x, weight, y, M / 2, N, K);
    half(x + (size_t)(M / 2) * K, weight, y + (size_t)(M / 2) * N, M - M / 2, N, K);
    frame[1] = frame[0];
}
void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    half(x, weight, y, M, N, K);
}
