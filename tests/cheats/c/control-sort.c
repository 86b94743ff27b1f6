// Rows are computed in an order that is sorted by qsort and found again by bsearch.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }
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
    int32_t *order = malloc((size_t)M * sizeof *order);
    for (int32_t i = 0; i < M; i++) order[i] = i * 7919 % M * 65536 + i;
    qsort(order, (size_t)M, sizeof *order, compare);
    for (int32_t i = 0; i < M; i++) {
        const int32_t *found = bsearch(&order[i], order, (size_t)M, sizeof *order, compare);
        const size_t   row = (size_t)(*found % 65536);
        product(x + row * (size_t)K, weight, y + row * (size_t)N, 1, N, K);
    }
    free(order);
}
