// Parts of K are added to the output without an atomic.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong cheat
//! launch gemm global(N, M, 4) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1), p = get_global_id(2);
    float sum = 0;
    for (int k = K * p / 4; k < K * (p + 1) / 4; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] += sum;
}
