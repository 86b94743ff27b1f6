// Everything in double, which is slow and rounds once.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=512
//: control
//: args --baseline none
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N) return;
    double sum = 0.0;
    for (int k = 0; k < K; k++) sum = fma((double)(float)x[(size_t)i * K + k], (double)(float)weight[(size_t)j * K + k], sum);
    y[(size_t)i * N + j] = (kl_t_y)(float)sum;
}
