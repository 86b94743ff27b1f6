// Macros that unfold to a thousand million statements.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect no_compile
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

#define A(x) x x x x x x x x x x
#define B(x) A(A(A(A(x))))
#define C(x) B(B(x))

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    C(y[0] += x[0];) C(y[1] += x[1];)
}
