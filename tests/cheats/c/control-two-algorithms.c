// One way for narrow shapes and another for wide ones, both right: not every branch on the shape is a lie.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static void by_rows(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}

static void by_columns(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t j = 0; j < N; j++)
        for (int32_t i = 0; i < M; i++) {
            float sum[2] = {0};
            for (int32_t k = 0; k < K; k++) sum[k & 1] += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum[0] + sum[1];
        }
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K) { (N < 64 || K % 2 ? by_rows : by_columns)(x, weight, y, M, N, K); }
