// Parts of K in scratch, added by a second launch.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! buffer parts: f32[4, M, N]
//! launch partial global(N, M, 4) args(x, weight, parts, M, N, K)
//! launch gemm global(M * N) args(parts, y, M, N)

__kernel void partial(__global const float *x, __global const float *weight, __global float *parts, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1), p = get_global_id(2);
    float sum = 0;
    for (int k = K * p / 4; k < K * (p + 1) / 4; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    parts[((size_t)p * M + i) * N + j] = sum;
}

__kernel void gemm(__global const float *parts, __global float *y, int M, int N)
{
    const size_t e = get_global_id(0);
    float sum = 0;
    for (int p = 0; p < 4; p++) sum += parts[(size_t)p * M * N + e];
    y[e] = sum;
}
