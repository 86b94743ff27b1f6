// Local memory whose size the launch says.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! launch gemm global(cdiv(N, 32) * 32, M) local(32, 1) args(x, weight, y, local(4 * K), M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, __local float *row, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_group_id(1);
    for (int k = get_local_id(0); k < K; k += get_local_size(0)) row[k] = x[(size_t)i * K + k];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (j >= N) return;
    float sum = 0;
    for (int k = 0; k < K; k++) sum += row[k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = sum;
}
