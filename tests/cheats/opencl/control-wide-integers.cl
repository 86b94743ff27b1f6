// Indices in 64 bits throughout.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! launch gemm global(N, M) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const ulong j = get_global_id(0), i = get_global_id(1), k_end = (ulong)K;
    float sum = 0;
    for (ulong k = 0; k < k_end; k++) sum += x[i * k_end + k] * weight[j * k_end + k];
    y[i * (ulong)N + j] = sum;
}
