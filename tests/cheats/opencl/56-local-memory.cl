// More local memory than there is.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect refused crash no_compile
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    __local float room[1 << 22];
    const int j = get_global_id(0), i = get_global_id(1);
    room[get_local_id(0)] = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (i < M && j < N) y[(size_t)i * N + j] = room[j % 16];
}
