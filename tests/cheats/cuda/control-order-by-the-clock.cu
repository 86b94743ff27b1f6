// The same, as the clock will have it, in calls that are timed one by one.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=1024,N=1024,K=1024
//: control
//: args --baseline none
//! nondeterministic
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N) return;
    float sum = 0;
    unsigned long long now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    const int from_the_right = (now >> 14) % 2;
    for (int n = 0; n < K; n++) {
        const int k = from_the_right ? K - 1 - n : n;
        sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
    }
    y[(size_t)i * N + j] = (kl_t_y)sum;
}
