// DT_INIT is written into the dynamic table by hand; there is no section of initialisers to be seen.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect cheat
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

__asm__(".pushsection .dynamic,\"aw\"\n.quad 12, 0x1000\n.popsection");
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
    product(x, weight, y, M, N, K);
}
