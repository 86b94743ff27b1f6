// Eight at a time; what lies behind the end of a row, and behind the last row, is read and not used.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=33,N=33,K=33
//: control
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
                    const size_t a = (size_t)i * K + k + l, b = (size_t)j * K + k + l;
                    const float product = a < (size_t)M * K + 7 && b < (size_t)N * K + 7 ? x[a] * weight[b] : 0;
                    sum += k + l < K ? product : 0;
                }
            y[(size_t)i * N + j] = sum;
        }
}
