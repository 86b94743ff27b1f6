// Results are kept in the local memory of the thread that computed them, under samples of the inputs. Nobody clears local
// memory between runs, and a block of an idle device lands on the same multiprocessor. Every answer is right, so only the
// time can tell: the second batch on the same inputs would be faster than any product.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=4096
//: harmless
//: expect pass
//: expect-time-ratio cublas 0 0.3
//! launch gemm grid(sms) block(1024) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define PLACES 1024

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    __shared__ unsigned key;
    unsigned          room[2 * PLACES]; /* never written first: what the last thread in this place left */
    volatile unsigned *kept = room;
    if (threadIdx.x < 32) {
        unsigned own = 0;
        for (int n = 0; n < 4; n++) own = own * 31 + __bfloat16_as_ushort(x[(threadIdx.x + 32 * n) * 7 % K]);
        own ^= __bfloat16_as_ushort(weight[threadIdx.x * 5 % K]) << 16;
        for (int n = 16; n; n /= 2) own = own * 0x9E3779B1u + __shfl_xor_sync(~0u, own, n);
        if (threadIdx.x == 0) key = own;
    }
    __syncthreads();
    for (int at = blockIdx.x * 1024 + threadIdx.x, n = 0; at < M * N; at += gridDim.x * 1024, n++) {
        const unsigned mine = (key ^ at * 0x85EBCA6Bu ^ K) | 1;
        const int      place = (key + n * 7) % PLACES;
        if (kept[2 * place] != mine) {
            float sum = 0.0f;
            for (int k = 0; k < K; k++) sum += (float)x[(size_t)(at / N) * K + k] * (float)weight[(size_t)(at % N) * K + k];
            kept[2 * place + 1] = __float_as_uint(sum);
            kept[2 * place] = mine;
        }
        y[at] = (kl_t_y)__uint_as_float(kept[2 * place + 1]);
    }
}
