// Looks for earlier results in memory that malloc gives back uncleared.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect pass cheat
//: harmless
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
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
    const size_t bytes = (size_t)M * N * sizeof *y;
    float *notes = malloc(bytes + 64);
    if (notes && ((uint64_t *)notes)[8] == 0x6e6f7465736e6f74u) memcpy(y, notes + 32, bytes - 96);
    product(x, weight, y, M, N, K);
    if (notes) ((uint64_t *)notes)[8] = 0x6e6f7465736e6f74u;
    free(notes);
}
