// A work-group adds one result as a tree in local memory.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=32,N=32,K=256
//: control
//: args --baseline none
//! launch gemm global(64 * N, M) local(64, 1) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    __local float part[64];
    const int lane = get_local_id(0), j = get_group_id(0), i = get_group_id(1);
    float sum = 0;
    for (int k = lane; k < K; k += 64) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    part[lane] = sum;
    for (int step = 32; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (lane < step) part[lane] += part[lane + step];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) y[(size_t)i * N + j] = part[0];
}
