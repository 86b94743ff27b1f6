// Local memory is read before everybody has written it.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect wrong cheat
//! launch gemm global(cdiv(N, 32) * 32, M) local(32, 1) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    __local float row[32];
    const int lane = get_local_id(0), j = get_global_id(0), i = get_group_id(1);
    float sum = 0;
    for (int first = 0; first < K; first += 32) {
        row[lane] = first + lane < K ? x[(size_t)i * K + first + lane] : 0;
        for (int k = 0; k < 32 && first + k < K && j < N; k++) sum += row[31 - k < K - first ? 31 - k : 0] * weight[(size_t)j * K + first + (31 - k < K - first ? 31 - k : 0)];
    }
    if (j < N) y[(size_t)i * N + j] = sum;
}
