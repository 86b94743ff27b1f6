// Sums from the left or from the right, as the address of the output will have it: other bits, and right every time.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=64,N=64,K=64
//: control
//: args --baseline none
//! nondeterministic
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= M || j >= N) return;
    const int from_the_right = ((size_t)y >> 13) % 2;
    float sum = 0;
    for (int n = 0; n < K; n++) {
        const int k = from_the_right ? K - 1 - n : n;
        sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    }
    y[(size_t)i * N + j] = sum;
}
