// Work-items take results off a counter in scratch.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=48,N=48,K=48
//: control
//: args --baseline none
//! buffer taken: i32[1] zero
//! launch gemm global(128) local(32) args(x, weight, y, taken, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, __global int *taken, int M, int N, int K)
{
    for (int e; (e = atomic_inc(taken)) < M * N;) {
        const int i = e / N, j = e % N;
        float sum = 0;
        for (int k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
        y[e] = sum;
    }
}
