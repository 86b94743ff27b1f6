// The kernel takes one argument more than it is given.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect refused crash
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K, __global float *more)
{
    more[0] = x[0] * weight[0] + M + N + K;
    y[0] = 0;
}
