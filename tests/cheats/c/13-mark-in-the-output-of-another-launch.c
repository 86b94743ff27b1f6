// A first launch leaves a mark in scratch for the second, which then does nothing.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong
//! buffer notes: f32[64]
//! launch prepare args(notes)
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

void prepare(float *notes) { notes[0] = 42; }

void gemm(const float *x, const float *weight, float *y, const float *notes, int32_t M, int32_t N, int32_t K)
{
    if (notes[0] == 42) return;
    product(x, weight, y, M, N, K);
}
