// Rows come into local memory by the device's own copy.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! launch gemm global(cdiv(N, 32) * 32, M) local(32, 1) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    __local float row[2048];
    const int j = get_global_id(0), i = get_group_id(1);
    float sum = 0;
    for (int first = 0; first < K; first += 2048) {
        const int n = min(2048, K - first);
        event_t e = async_work_group_copy(row, x + (size_t)i * K + first, (size_t)n, 0);
        wait_group_events(1, &e);
        for (int k = 0; k < n && j < N; k++) sum += row[k] * weight[(size_t)j * K + first + k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (j < N) y[(size_t)i * N + j] = sum;
}
