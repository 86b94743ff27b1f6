// Operands as eight-bit integers with one scale a row.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=48,N=48,K=64
//: expect wrong
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static float scale_of(const float *row, int32_t n)
{
    float top = 1e-30f;
    for (int32_t k = 0; k < n; k++) top = row[k] > top ? row[k] : -row[k] > top ? -row[k] : top;
    return top / 127;
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            const float *a = x + (size_t)i * K, *b = weight + (size_t)j * K, s = scale_of(a, K), t = scale_of(b, K);
            int32_t sum = 0;
            for (int32_t k = 0; k < K; k++) sum += (int8_t)__builtin_lrintf(a[k] / s) * (int8_t)__builtin_lrintf(b[k] / t);
            y[(size_t)i * N + j] = (float)sum * s * t;
        }
}
