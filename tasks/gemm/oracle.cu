// The trusted product on a GPU, every term and every sum in float64.  A block computes a 64x64 tile; a thread owns a
// 4x4 piece whose rows and columns lie 16 apart, so that neighbours read neighbouring words of shared memory.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle grid(cdiv(N, 64), cdiv(M, 64)) block(16, 16) args(x, weight, y, M, N, K)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define TILE 64
#define DEPTH 16

template <typename T>
__device__ void load_tile(double tile[DEPTH][TILE + 1], const T *matrix, int first_row, int rows, int first_k, int K)
{
    for (int n = threadIdx.y * 16 + threadIdx.x; n < TILE * DEPTH; n += 256) {
        const int row = first_row + n / DEPTH, k = first_k + n % DEPTH;
        tile[n % DEPTH][n / DEPTH] = row < rows && k < K ? (double)(float)matrix[(size_t)row * K + k] : 0.0;
    }
}

extern "C" __global__ void oracle(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int M, int N, int K)
{
    __shared__ double rows[DEPTH][TILE + 1], columns[DEPTH][TILE + 1];
    const int i0 = blockIdx.y * TILE, j0 = blockIdx.x * TILE;
    double sum[4][4] = {};
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        load_tile(rows, x, i0, M, k0, K);
        load_tile(columns, weight, j0, N, k0, K);
        __syncthreads();
        for (int k = 0; k < DEPTH; k++)
            for (int a = 0; a < 4; a++)
                for (int b = 0; b < 4; b++)
                    sum[a][b] += rows[k][threadIdx.y + 16 * a] * columns[k][threadIdx.x + 16 * b];
        __syncthreads();
    }
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            const int i = i0 + threadIdx.y + 16 * a, j = j0 + threadIdx.x + 16 * b;
            if (i < M && j < N)
                y[(size_t)i * N + j] = sum[a][b];
        }
}
