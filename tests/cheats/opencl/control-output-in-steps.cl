// Adds to the output launch by launch, after one that clears it.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! launch clear global(M * N) args(y)
//! launch gemm global(N, M) args(x, weight, y, 0, K / 2, N, K)
//! launch gemm global(N, M) args(x, weight, y, K / 2, K, N, K)

__kernel void clear(__global float *y) { y[get_global_id(0)] = 0; }

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int from, int to, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    float sum = y[(size_t)i * N + j];
    for (int k = from; k < to; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = sum;
}
