// A long array in private memory.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! launch gemm global(M) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int i = get_global_id(0);
    float sums[64];
    for (int j0 = 0; j0 < N; j0 += 64) {
        for (int j = 0; j < 64; j++) sums[j] = 0;
        for (int k = 0; k < K; k++)
            for (int j = 0; j < 64 && j0 + j < N; j++) sums[j] += x[(size_t)i * K + k] * weight[(size_t)(j0 + j) * K + k];
        for (int j = 0; j < 64 && j0 + j < N; j++) y[(size_t)i * N + j0 + j] = sums[j];
    }
}
