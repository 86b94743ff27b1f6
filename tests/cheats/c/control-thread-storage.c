// A buffer of each thread, filled anew by every call.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

static _Thread_local float row[4096];
void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++) {
        for (int32_t k = 0; k < K; k++) row[k] = x[(size_t)i * K + k];
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++) sum += row[k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
    }
}
