// Half of a work-group waits at a barrier that the other half never reaches.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect hang wrong crash cheat
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (get_local_id(0) < 8) {
        while (get_local_id(1) < 16 && M > 0) barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < M && j < N) y[(size_t)i * N + j] = 0;
}
