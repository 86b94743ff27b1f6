// Two bfloat16 in one load where rows begin on even elements; products and sums in float32.
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
    float              even = 0.0f, odd = 0.0f;
    const int          pairs = K % 2 ? 0 : K / 2;
    for (int k = 0; k < pairs; k++) {
        const float2 p = __bfloat1622float2(((const __nv_bfloat162 *)u)[k]), q = __bfloat1622float2(((const __nv_bfloat162 *)v)[k]);
        even = fmaf(p.x, q.x, even);
        odd = fmaf(p.y, q.y, odd);
    }
    for (int k = 2 * pairs; k < K; k++) even += (float)u[k] * (float)v[k];
    y[(size_t)i * N + j] = (kl_t_y)(even + odd);
}
