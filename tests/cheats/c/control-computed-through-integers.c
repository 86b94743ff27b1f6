// Addresses through integers and unions, as generated code has them.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    const uintptr_t a = (uintptr_t)x, b = (uintptr_t)weight, c = (uintptr_t)y;
    for (uintptr_t i = 0; i < (uintptr_t)M; i++)
        for (uintptr_t j = 0; j < (uintptr_t)N; j++) {
            float sum = 0;
            for (uintptr_t k = 0; k < (uintptr_t)K; k++)
                sum += *(const float *)(a + 4 * (i * (uintptr_t)K + k)) * *(const float *)(b + 4 * (j * (uintptr_t)K + k));
            *(float *)(c + 4 * (i * (uintptr_t)N + j)) = sum;
        }
}
