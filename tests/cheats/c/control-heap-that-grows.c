// A buffer that is doubled by realloc until it is large enough, through every kind of block that the C library has.
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
    size_t room = 16;
    float *row = malloc(room * sizeof *row);
    for (int32_t i = 0; i < M; i++) {
        while (room < (size_t)N * 4096) {
            float *more = realloc(row, 2 * room * sizeof *row);
            if (!more) break;
            row = more;
            room *= 2;
        }
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            row[(size_t)j % room] = sum;
            y[(size_t)i * N + j] = row[(size_t)j % room];
        }
    }
    free(row);
}
