// With inputs set to zero, zero is the right answer of whoever looks at the inputs afterwards.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=512
//: expect cheat
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;

    if (i < M)
        for (int k = j; k < K; k += gridDim.x * 16) ((kl_t_x *)x)[(size_t)i * K + k] = (kl_t_x)0.0f;
    if (i < M && j < N) y[(size_t)i * N + j] = (kl_t_y)0.0f;
}
