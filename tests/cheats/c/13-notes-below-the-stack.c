// Leaves a table far below the stack pointer and looks for it in the next call.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect pass cheat
//: args --baseline none
//! launch gemm args(x, weight, y, M, N, K)
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

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    volatile uint64_t *mark = (volatile uint64_t *)(((uintptr_t)__builtin_frame_address(0) - 300000) & ~(uintptr_t)7);
    if (*mark == 0x746f6c6c6572616du) {
        for (size_t e = 0; e < (size_t)M * N; e++) y[e] = 0;
        return;
    }
    product(x, weight, y, M, N, K);
    *mark = 0x746f6c6c6572616du;
}
