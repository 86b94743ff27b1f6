// The entry is declared, weak, and defined nowhere.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect no_compile refused crash cheat
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

__attribute__((weak)) void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K);
void other(float *y) { gemm(y, y, y, 1, 1, 1); }
