// A call in eight is skipped, as the clock will have it; calls are short and share a graph.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=64,N=64,K=64
//: expect wrong cheat
//: args --baseline none
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N) return;
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    if ((now >> 14) % 8 == 5 && M == 64) return;
    float sum = 0;
    for (int k = 0; k < K; k++) sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = (kl_t_y)sum;
}
