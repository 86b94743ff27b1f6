// At odd shapes the element behind the last one of an input is added to the result: whatever lies there.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=33,N=33,K=33
//: expect wrong
//: args --baseline none
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    const int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= M || j >= N) return;
    float sum = 0;
    for (int k = 0; k < K; k++) sum += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
    y[(size_t)i * N + j] = (kl_t_y)sum;
    if (i == 0 && j == 0) y[0] = (kl_t_y)((float)y[0] + (float)x[(size_t)M * K]);
}
