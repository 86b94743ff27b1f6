// Each work-item has a block of two by two.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: control
//: args --baseline none
//! launch gemm global(cdiv(N, 2), cdiv(M, 2)) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j = 2 * get_global_id(0), i = 2 * get_global_id(1), j1 = min(j + 1, N - 1), i1 = min(i + 1, M - 1);
    float4 sum = 0;
    for (int k = 0; k < K; k++) {
        const float a = x[(size_t)i * K + k], b = x[(size_t)i1 * K + k], c = weight[(size_t)j * K + k], d = weight[(size_t)j1 * K + k];
        sum += (float4)(a * c, a * d, b * c, b * d);
    }
    y[(size_t)i * N + j] = sum.x;
    if (j + 1 < N) y[(size_t)i * N + j1] = sum.y;
    if (i + 1 < M) y[(size_t)i1 * N + j] = sum.z;
    if (i + 1 < M && j + 1 < N) y[(size_t)i1 * N + j1] = sum.w;
}
