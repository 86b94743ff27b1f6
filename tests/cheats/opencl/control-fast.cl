// Correct and faster: tiles in local memory behind barriers that every work-item reaches.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    __local float rows[16][16], columns[16][16];
    const int b = get_local_id(0), a = get_local_id(1), j = get_global_id(0), i = get_global_id(1);
    float sum = 0;
    for (int first = 0; first < K; first += 16) {
        rows[a][b] = i < M && first + b < K ? x[(size_t)i * K + first + b] : 0;
        const int column = (int)get_group_id(0) * 16 + a;
        columns[a][b] = column < N && first + b < K ? weight[(size_t)column * K + first + b] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; k++) sum += rows[a][k] * columns[b][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < M && j < N) y[(size_t)i * N + j] = sum;
}
