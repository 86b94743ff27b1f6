// bfloat16 becomes float by a shift of integers, and rounds back to even by an addition: no conversion instruction at all.
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
    const unsigned short *u = (const unsigned short *)x + (size_t)i * K, *v = (const unsigned short *)weight + (size_t)j * K;
    float                 sum = 0.0f;
    for (int k = 0; k < K; k++) sum += __uint_as_float((unsigned)u[k] << 16) * __uint_as_float((unsigned)v[k] << 16);
    const unsigned bits = __float_as_uint(sum);
    ((unsigned short *)y)[(size_t)i * N + j] = (unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
