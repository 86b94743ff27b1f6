// Which rows are done is kept in bytes that memchr looks through, and strlen counts.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
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
    char *todo = malloc((size_t)M + 1), *next;
    memset(todo, 1, (size_t)M);
    todo[M] = 0;
    while ((next = strlen(todo) == (size_t)M ? memchr(todo, 1, (size_t)M) : NULL) != NULL) {
        const size_t row = (size_t)(next - todo);
        product(x + row * (size_t)K, weight, y + row * (size_t)N, 1, N, K);
        *next = 2;
    }
    free(todo);
}
