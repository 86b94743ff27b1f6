// Tiles and their sums are one line of work, cut into equal pieces for as many blocks as there are multiprocessors: a tile
// may have pieces in several blocks, which add to the same scratch. The block that brings the last piece of a tile writes
// it.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=512
//: control
//: args --baseline none
//! nondeterministic
//! buffer sum: f32[M, N] zero
//! buffer done: i32[cdiv(M, 16) * cdiv(N, 16)] zero
//! launch gemm grid(sms) block(16, 16) args(x, weight, y, sum, done, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define STEPS ((K + 31) / 32)

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, float *sum, int *done, int M, int N, int K)
{
    __shared__ bool last;
    const int       across = (N + 15) / 16, all = across * ((M + 15) / 16) * STEPS, each = (all + gridDim.x - 1) / gridDim.x;
    for (int at = blockIdx.x * each, end = min(at + each, all); at < end;) {
        const int tile = at / STEPS, first = at % STEPS, n = min(STEPS - first, end - at);
        const int i = tile / across * 16 + threadIdx.y, j = tile % across * 16 + threadIdx.x;
        float     part = 0.0f;
        for (int k = first * 32; i < M && j < N && k < min((first + n) * 32, K); k++) part += (float)x[(size_t)i * K + k] * (float)weight[(size_t)j * K + k];
        if (i < M && j < N) atomicAdd(sum + (size_t)i * N + j, part);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicAdd(done + tile, n) + n == STEPS;
        __syncthreads();
        if (last && i < M && j < N) y[(size_t)i * N + j] = (kl_t_y)atomicAdd(sum + (size_t)i * N + j, 0.0f);
        __syncthreads();
        at += n;
    }
}
