// Rows in an order that a multiplicative generator gives: no two neighbours.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=95,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    int32_t step = 7;
    while (M % step == 0) step += 2;
    for (int32_t t = 0, i = 0; t < M; t++, i = (i + step) % M)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}
