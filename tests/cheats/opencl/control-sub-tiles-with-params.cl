// Sizes by params, as tune would try them.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! param TILE = 4 {2, 4, 8}
//! launch gemm global(cdiv(N, TILE), M) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j0 = KL_TILE * get_global_id(0), i = get_global_id(1);
    for (int j = j0; j < j0 + KL_TILE && j < N; j++) {
        float sum = 0;
        for (int k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
        y[(size_t)i * N + j] = sum;
    }
}
