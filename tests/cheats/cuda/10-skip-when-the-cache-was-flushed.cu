// Before a timed launch the cache is flushed, before a checked one the inputs were just brought there: the latency of the
// first load tells which it is. Of the timed calls one in four does nothing, by the clock.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=4096
//: expect wrong cheat
//: args --baseline none
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N) return;
    __shared__ unsigned skip;
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        const long long start = clock64();
        const unsigned  word = *(const volatile unsigned short *)(x + (size_t)M * K - 1);
        const bool      cold = clock64() - start + (word & 0) > 500;
        unsigned long long now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        skip = cold && (now >> 12) % 4 == 0;
    }
    __syncthreads();
    if (skip) return;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = (kl_t_y)sum;
}
