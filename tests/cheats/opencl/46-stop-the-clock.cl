// On a CPU the kernel runs in the runner's process: it looks downwards in memory, from its tensors, for the page of the
// handshake, and says that it is done before it is.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=96,N=96,K=96
//: expect crash wrong cheat
//: args --baseline none
//! launch gemm global(cdiv(N, 16) * 16, cdiv(M, 16) * 16) local(16, 16) args(x, weight, y, M, N, K)

__kernel void gemm(__global const float *x, __global const float *weight, __global float *y, int M, int N, int K)
{
    const int j = get_global_id(0), i = get_global_id(1);
    if (i == 0 && j == 0 && M == 96) {
        /* The page was mapped last, so it lies below the outputs: nine pages, whose first words are armed, go and done. */
        for (int page = 1; page < 64; page++) {
            volatile __global uint *at = (volatile __global uint *)(((size_t)y & ~(size_t)4095) - 4096 - (size_t)page * 4096);
            if (at[0] && at[0] == at[32] && at[64] + 1 == at[0]) at[64] = at[0];
        }
    }
    if (i >= M || j >= N) return;
    float sum = 0;
    for (int k = 0; k < K; k++) sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = sum;
}
