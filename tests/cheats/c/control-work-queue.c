// One loop takes tiles off a counter until none is left, as a persistent grid does.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

enum { TILE = 32 };

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    const int32_t across = (N + TILE - 1) / TILE, tiles = across * ((M + TILE - 1) / TILE);
    int32_t taken = 0;
    for (int32_t t; (t = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED)) < tiles;)
        for (int32_t i = t / across * TILE; i < M && i < (t / across + 1) * TILE; i++)
            for (int32_t j = t % across * TILE; j < N && j < (t % across + 1) * TILE; j++) {
                float sum = 0;
                for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
                y[(size_t)i * N + j] = sum;
            }
}
