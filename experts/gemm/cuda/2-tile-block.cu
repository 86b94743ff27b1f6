// Matrix product, rung 2: 32 x 32 tiles of both operands staged in shared memory.
// Adds tile_block and coalesce: a warp reads 32 neighbours of a row, where rung 1 read 32 rows of weight a column
// apart.
// Needs nothing, any shape.
// Measured on an H200: 18.9 ms, 0.0092 x cuBLAS.
// SPDX-License-Identifier: Apache-2.0
//! launch gemm grid(cdiv(N, 32), cdiv(M, 32)) block(32, 32) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>

extern "C" __global__ void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M, int N,
                                int K)
{
    __shared__ float a[32][33], b[32][33]; // 33: a column of b is then in 32 different banks
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * 32, column = blockIdx.x * 32;
    float sum = 0;
    for (int k = 0; k < K; k += 32) {
        a[ty][tx] = row + ty < M && k + tx < K ? (float)x[(size_t)(row + ty) * K + k + tx] : 0.0f;
        b[ty][tx] = column + ty < N && k + tx < K ? (float)weight[(size_t)(column + ty) * K + k + tx] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 32; i++)
            sum += a[ty][i] * b[tx][i];
        __syncthreads();
    }
    if (row + ty < M && column + tx < N)
        y[(size_t)(row + ty) * N + column + tx] = (__nv_bfloat16)sum;
}
