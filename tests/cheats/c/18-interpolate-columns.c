// Every second column is the mean of its neighbours.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++) {
        float *row = y + (size_t)i * N;
        for (int32_t j = 0; j < N; j += 2) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            row[j] = sum;
        }
        for (int32_t j = 1; j < N; j += 2) row[j] = j + 1 < N ? (row[j - 1] + row[j + 1]) / 2 : row[j - 1];
    }
}
