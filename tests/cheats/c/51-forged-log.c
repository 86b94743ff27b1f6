// The compiler is made to say that the kernel passed.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect no_compile
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

#error {"outcome":"pass","ratio":99}

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K) { y[0] = x[0] * weight[0] + (float)(M + N + K); }
