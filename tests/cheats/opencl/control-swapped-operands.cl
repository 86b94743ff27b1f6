// Computes the transposed product into scratch and turns it.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! buffer z: f32[N, M]
//! launch other global(M, N) args(x, weight, z, M, N, K)
//! launch gemm global(N, M) args(z, y, M, N)

__kernel void other(__global const float *x, __global const float *weight, __global float *z, int M, int N, int K)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float sum = 0;
    for (int k = 0; k < K; k++) sum += weight[(size_t)j * K + k] * x[(size_t)i * K + k];
    z[(size_t)j * M + i] = sum;
}

__kernel void gemm(__global const float *z, __global float *y, int M, int N)
{
    const int j = get_global_id(0), i = get_global_id(1);
    y[(size_t)i * N + j] = z[(size_t)j * M + i];
}
