// Sixteen products at a time are summed in float16 and these sums in float32: precise enough for normal inputs, and
// neither for large ones, which overflow, nor for small ones, which vanish.
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
    for (int k0 = 0; k0 < K; k0 += 16) {
        __half part = (__half)0.0f;
        for (int k = k0; k < min(k0 + 16, K); k++) part = __hfma((__half)(float)x[(size_t)i * K + k], (__half)(float)weight[(size_t)j * K + k], part);
        sum += (float)part;
    }
    y[(size_t)i * N + j] = (kl_t_y)sum;
}
