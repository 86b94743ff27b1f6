// A launch that turns one operand, and one that multiplies.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! buffer turned: f32[K, N]
//! launch turn global(K, N) args(weight, turned, N, K)
//! launch gemm global(N, M) args(x, turned, y, M, N, K)

__kernel void turn(__global const float *weight, __global float *turned, int N, int K)
{
    const int k = get_global_id(0), j = get_global_id(1);
    turned[(size_t)k * N + j] = weight[(size_t)j * K + k];
}

__kernel void gemm(__global const float *x, __global const float *turned, __global float *y, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < K; k++) sum += x[(size_t)i * K + k] * turned[(size_t)k * N + j];
    y[(size_t)i * N + j] = sum;
}
