// A fixed number of work-items, each takes every so manieth result.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! launch gemm global(256) local(64) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    for (size_t e = get_global_id(0); e < (size_t)M * N; e += get_global_size(0)) {
        const size_t i = e / N, j = e % N;
        float sum = 0;
        for (int k = 0; k < K; k++) sum += x[i * K + k] * weight[j * K + k];
        y[e] = sum;
    }
}
