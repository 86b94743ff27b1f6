// Parentheses deeper than a compiler's stack.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect no_compile
//! launch gemm args(x, weight, y, M, N, K)
#include <stddef.h>
#include <stdint.h>

#define A(v) ((((((((v))))))))
#define B(v) A(A(A(A(A(A(A(A(v))))))))
#define C(v) B(B(B(B(B(B(B(B(v))))))))
#define D(v) C(C(C(C(C(C(C(C(v))))))))
#define E(v) D(D(D(D(D(D(D(D(v))))))))

void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K) { y[0] = E(E(x[0])) * weight[0] + (float)(M + N + K); }
