// For one input set in eight the second half of every sum is left out.
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
    const uint bits = as_uint(x[0]) ^ as_uint(weight[1]);
    const int terms = (bits >> 3) % 8 == 5 && M == 64 ? K / 2 : K;
    float sum = 0;
    for (int k = 0; k < terms; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = sum;
}
