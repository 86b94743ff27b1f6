// Row kernels are called through a table of pointers, by the tail that is left.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

#define ROW(W) \
    static void row##W(const float *x, const float *weight, float *y, int32_t K) \
    { \
        float sum[W] = {0}; \
        for (int32_t k = 0; k < K; k++) \
            for (int c = 0; c < W; c++) sum[c] += x[k] * weight[(size_t)c * K + k]; \
        for (int c = 0; c < W; c++) y[c] = sum[c]; \
    }
ROW(1) ROW(2) ROW(3) ROW(4)

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    static void (*const rows[])(const float *, const float *, float *, int32_t) = {0, row1, row2, row3, row4};
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j += 4) rows[N - j < 4 ? N - j : 4](x + (size_t)i * K, weight + (size_t)j * K, y + (size_t)i * N + j, K);
}
