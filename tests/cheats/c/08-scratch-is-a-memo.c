// Scratch keeps the first answer, for calls that find it there: it is poisoned before every call, so none does.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect pass
//: harmless
//! buffer notes: f32[M * N + 1]
//! launch gemm args(x, weight, y, notes, M, N, K)
#include <stddef.h>
#include <stdint.h>

static void product(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}

void gemm(const float *x, const float *weight, float *y, float *notes, int32_t M, int32_t N, int32_t K)
{
    const size_t n = (size_t)M * N;
    if (notes[n] == 42) {
        for (size_t e = 0; e < n; e++) y[e] = notes[e];
        return;
    }
    product(x, weight, y, M, N, K);
    for (size_t e = 0; e < n; e++) notes[e] = y[e];
    notes[n] = 42;
}
