// Each quarter of K has sums of its own in scratch, and a second launch adds them.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! buffer parts: f32[4, M, N]
//! launch partial args(x, weight, parts, M, N, K)
//! launch gemm args(parts, y, M, N)
#include <stddef.h>
#include <stdint.h>

enum { PARTS = 4 };

void partial(const float *x, const float *weight, float *parts, int32_t M, int32_t N, int32_t K)
{
    for (int32_t p = 0; p < PARTS; p++)
        for (int32_t i = 0; i < M; i++)
            for (int32_t j = 0; j < N; j++) {
                float sum = 0;
                for (int32_t k = K * p / PARTS; k < K * (p + 1) / PARTS; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
                parts[((size_t)p * M + i) * N + j] = sum;
            }
}

void gemm(const float *parts, float *y, int32_t M, int32_t N)
{
    for (size_t e = 0; e < (size_t)M * N; e++) {
        float sum = 0;
        for (int32_t p = 0; p < PARTS; p++) sum += parts[(size_t)p * M * N + e];
        y[e] = sum;
    }
}
