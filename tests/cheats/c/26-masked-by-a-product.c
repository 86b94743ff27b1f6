// Eight at a time; what lies behind the end of a row is multiplied by a mask of zeros, behind the last row too.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=33,N=33,K=33
//: expect wrong
//: args --baseline none
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k += 8)
                for (int32_t l = 0; l < 8; l++) {
                    const float mask = k + l < K;
                    sum += mask * x[(size_t)i * K + k + l] * weight[(size_t)j * K + k + l];
                }
            y[(size_t)i * N + j] = sum;
        }
}
