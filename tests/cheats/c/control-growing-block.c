// A large block grows by realloc, whatever the system lets it do.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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
    float *sums = NULL;
    for (size_t n = 1 << 18; n <= 1 << 20; n *= 2) {
        sums = realloc(sums, n * sizeof *sums);
        sums[n / 2] = sums[n - 1] = (float)n;
    }
    product(x, weight, y, M, N, K);
    y[0] += sums[(1 << 20) - 1] - (float)(1 << 20);
    free(sums);
}
