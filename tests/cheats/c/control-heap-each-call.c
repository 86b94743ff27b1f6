// A transposed copy from the heap, given back before the end.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    float *turned = malloc((size_t)N * K * sizeof *turned);
    if (!turned) return;
    for (int32_t j = 0; j < N; j++)
        for (int32_t k = 0; k < K; k++) turned[(size_t)k * N + j] = weight[(size_t)j * K + k];
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * turned[(size_t)k * N + j];
            y[(size_t)i * N + j] = sum;
        }
    free(turned);
}
