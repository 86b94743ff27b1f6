// Sums from the left or from the right, as the address of the output will have it: other bits, and right every time.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=64,N=64,K=64
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
    const int from_the_right = ((unsigned long long)y >> 14) % 2;
    for (int n = 0; n < K; n++) {
        const int k = from_the_right ? K - 1 - n : n;
        sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
    }
    y[(size_t)i * N + j] = (kl_t_y)sum;
}
