// A warp for each tile of 16 x 16, through the matrix unit's C++ interface, with whole tiles copied to shared memory first
// so that edges are zeros.
// SPDX-License-Identifier: Apache-2.0
//: task gemm
//: workload M=512,N=512,K=512
//: control
//: args --baseline none
//! launch gemm grid(cdiv(N, 16), cdiv(M, 16)) block(32) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

extern "C" __global__ void gemm(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    __shared__ alignas(32) __nv_bfloat16 u[256], v[256];
    __shared__ alignas(32) float to[256];
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> left;
    fragment<matrix_b, 16, 16, 16, __nv_bfloat16, col_major> right;
    fragment<accumulator, 16, 16, 16, float>                 sum;
    fill_fragment(sum, 0.0f);
    for (int k0 = 0; k0 < K; k0 += 16) {
        for (int n = threadIdx.x; n < 256; n += 32) {
            const int i = blockIdx.y * 16 + n / 16, j = blockIdx.x * 16 + n / 16, k = k0 + n % 16;
            u[n] = i < M && k < K ? x[(size_t)i * K + k] : (__nv_bfloat16)0.0f;
            v[n] = j < N && k < K ? weight[(size_t)j * K + k] : (__nv_bfloat16)0.0f;
        }
        __syncwarp();
        load_matrix_sync(left, u, 16);
        load_matrix_sync(right, v, 16);
        mma_sync(sum, left, right, sum);
        __syncwarp();
    }
    store_matrix_sync(to, sum, 16, mem_row_major);
    __syncwarp();
    for (int n = threadIdx.x; n < 256; n += 32) {
        const int i = blockIdx.y * 16 + n / 16, j = blockIdx.x * 16 + n % 16;
        if (i < M && j < N) y[(size_t)i * N + j] = (kl_t_y)to[n];
    }
}
