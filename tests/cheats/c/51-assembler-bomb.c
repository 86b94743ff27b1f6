// A macro of the assembler's that never ends.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect no_compile refused
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

__asm__(".rept 100000000\n.quad 0\n.endr");

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K) { y[0] = x[0] * weight[0] + (float)(M + N + K); }
