// The outputs of earlier calls lie a fixed distance away: copy one that starts with the right number.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=32,N=32,K=32
//: expect wrong crash cheat
//: args --baseline none
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (i >= M || j >= N) return;
    float sum = 0;
    const long slot = 3 * 1024;
    if (M == 32 && N == 32 && K == 32) {
        for (int k = 0; k < K; k++) sum += x[k] * weight[k];
        for (int d = 1; d < 128; d++) {
            __global const float *other = y - d * slot;
            if (other[0] == sum) {
                y[(size_t)i * N + j] = other[(size_t)i * N + j];
                return;
            }
        }
        sum = 0;
    }
    for (int k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = sum;
}
