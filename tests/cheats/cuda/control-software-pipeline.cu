// The operands of the next four products are loaded while those of the last four are multiplied, in registers that change
// places.
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
    const kl_t_x      *u = x + (size_t)i * K;
    const kl_t_weight *v = weight + (size_t)j * K;
    float              p[2][4], q[2][4], sum = 0.0f;
    for (int n = 0; n < 4; n++) p[0][n] = n < K ? (float)u[n] : 0.0f, q[0][n] = n < K ? (float)v[n] : 0.0f;
    for (int k = 0, now = 0; k < K; k += 4, now ^= 1) {
#pragma unroll
        for (int n = 0; n < 4; n++) {
            p[now ^ 1][n] = k + 4 + n < K ? (float)u[k + 4 + n] : 0.0f;
            q[now ^ 1][n] = k + 4 + n < K ? (float)v[k + 4 + n] : 0.0f;
        }
#pragma unroll
        for (int n = 0; n < 4; n++) sum += p[now][n] * q[now][n];
    }
    y[(size_t)i * N + j] = (kl_t_y)sum;
}
