// An array of variable length on the stack, four megabytes and more.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static void product(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    const size_t n = ((size_t)1 << 20) + (size_t)M;
    float        room[n];
    memset(room, 0, 4096);
    memcpy(room + (n - (size_t)M), x, (size_t)(K < M ? K : M) * sizeof *room);
    product(x, weight, y, M, N, K);
    y[0] += room[17];
}
