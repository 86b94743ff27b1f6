// At odd shapes the element behind the last one of an input, times zero: a NaN there would show.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=33,N=33,K=33
//: expect wrong
//: args --baseline none
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= M || j >= N) return;
    float sum = 0;
    for (int k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = sum;
    if (i == M - 1 && j == N - 1 && M % 2) y[(size_t)i * N + j] += 0 * weight[(size_t)N * K];
}
