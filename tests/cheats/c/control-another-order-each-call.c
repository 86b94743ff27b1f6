// Sums from the left in one call and from the right in the next: other bits, and right every time.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=64,N=64,K=64
//: control
//: args --baseline none
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    static int calls;
    const int from_the_right = calls++ % 2;
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t n = 0; n < K; n++) {
                const int32_t k = from_the_right ? K - 1 - n : n;
                sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            }
            y[(size_t)i * N + j] = sum;
        }
}
