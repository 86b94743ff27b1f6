// Matrix product, rung 4: the tensor cores, through mma.sync.
// Adds mma_ldmatrix, warp_tile and pad_bank: operands stay bf16 in shared memory, rows padded by 16 bytes so that the 8
// rows of an ldmatrix lie in different banks; 8 warps of 64 x 32 each.  Adds vectorize_global where rows of K allow it.
// Needs nothing, any shape.
// Measured on an H200: 1.41 ms, 0.124 x cuBLAS.
// SPDX-License-Identifier: Apache-2.0
//! launch gemm grid(cdiv(N, 128), cdiv(M, 128)) block(256) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <stdint.h>

constexpr int TILE = 128, DEPTH = 32, PITCH = DEPTH + 8;

static __device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

static __device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address));
}

static __device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ void stage(__nv_bfloat16 (&to)[TILE][PITCH], const __nv_bfloat16 *from, int row,
                                             int rows, int k, int K)
{
    if (K % 8 == 0) {
        for (int i = threadIdx.x; i < TILE * DEPTH / 8; i += 256) {
            const int r = i / (DEPTH / 8), c = i % (DEPTH / 8) * 8;
            uint4 v = make_uint4(0, 0, 0, 0);
            if (row + r < rows && k + c < K)
                v = *(const uint4 *)&from[(size_t)(row + r) * K + k + c];
            *(uint4 *)&to[r][c] = v;
        }
        return;
    }
    for (int i = threadIdx.x; i < TILE * DEPTH; i += 256) {
        const int r = i / DEPTH, c = i % DEPTH;
        to[r][c] = row + r < rows && k + c < K ? from[(size_t)(row + r) * K + k + c] : (__nv_bfloat16)0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(256)
gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N, int K)
{
    __shared__ __align__(16) __nv_bfloat16 a[TILE][PITCH], b[TILE][PITCH];
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
    float sum[4][4][4] = {};
    for (int k = 0; k < K; k += DEPTH) {
        stage(a, x, row, M, k, K);
        stage(b, weight, column, N, k, K);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < DEPTH; i += 16) {
            uint32_t u[4][4], v[2][4];
            for (int r = 0; r < 4; r++)
                load_matrices(u[r], shared_address(&a[warp_row + r * 16 + lane % 16][i + lane / 16 * 8]));
            for (int c = 0; c < 2; c++)
                load_matrices(
                    v[c], shared_address(&b[warp_column + c * 16 + lane % 8 + lane / 16 * 8][i + lane / 8 % 2 * 8]));
            for (int r = 0; r < 4; r++)
                for (int c = 0; c < 4; c++)
                    multiply(sum[r][c], u[r], v[c / 2][c % 2 * 2], v[c / 2][c % 2 * 2 + 1]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 4; r++)
#pragma unroll
        for (int c = 0; c < 4; c++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int i = row + warp_row + r * 16 + lane / 4 + e / 2 * 8;
                const int j = column + warp_column + c * 8 + lane % 4 * 2 + e % 2;
                if (i < M && j < N)
                    y[(size_t)i * N + j] = (__nv_bfloat16)sum[r][c][e];
            }
}
