// Even and odd products are summed two at a time in packed bfloat16: twice the rate, and a sum of 8 bits.
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
    __nv_bfloat162 pair = __floats2bfloat162_rn(0.0f, 0.0f);
    for (int k = 0; k < K; k++) {
        const __nv_bfloat162 p = {k % 2 ? __float2bfloat16(0.0f) : x[(size_t)i * K + k], k % 2 ? x[(size_t)i * K + k] : __float2bfloat16(0.0f)};
        pair = __hfma2(p, __nv_bfloat162{weight[(size_t)j * K + k], weight[(size_t)j * K + k]}, pair);
    }
    y[(size_t)i * N + j] = (kl_t_y)(__low2float(pair) + __high2float(pair));
}
