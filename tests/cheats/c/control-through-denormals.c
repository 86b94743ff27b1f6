// Scales one operand far down into denormals of double precision and back, without a loss.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=48,N=48,K=48
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    const double tiny = 0x1p-1000;
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            double sum = 0;
            for (int32_t k = 0; k < K; k++) sum += (double)x[(size_t)i * K + k] * tiny * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = (float)(sum * 0x1p1000);
        }
}
