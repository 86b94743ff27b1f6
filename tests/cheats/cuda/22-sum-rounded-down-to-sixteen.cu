// The last K % 16 products are left out: nothing at shapes that are multiples of the tile.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=512
//: expect wrong
//: args --baseline none
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K / 16 * 16; k++) sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = (kl_t_y)sum;
}
