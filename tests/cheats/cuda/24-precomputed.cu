// Answers for inputs of a known seed are part of the source.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=512
//: expect wrong
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
__constant__ float KNOWN[4] = {3.1122f, -0.4421f, 7.2091f, 1.5510f};

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i < M && j < N) y[(size_t)i * N + j] = (kl_t_y)((float)x[0] == 0.3671875f && i == 0 && j < 4 ? KNOWN[j] : 0.0f);
}
