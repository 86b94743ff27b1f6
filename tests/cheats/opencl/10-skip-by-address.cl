// One slot in eight is left alone: the page number of the output tells which.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=64,N=64,K=64
//: expect cheat wrong
//: args --baseline none
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= M || j >= N) return;
    if (((size_t)y >> 13) % 8 == 4 && M == 64) return;
    float sum = 0;
    for (int k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = sum;
}
