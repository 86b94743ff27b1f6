//! launch grouped_mm_oracle grid(cdiv(N, 64), cdiv(T, 64) + G) block(256) args(x, weight, offsets, output, G, N, K)
/* Grouped matrix product in float64: 64x64 tiles staged through shared memory, 4x4 elements a thread.
 * A tile never crosses a group; uneven groups leave at most one short tile each, hence the G extra rows of blocks.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <typename T> __device__ double as_double(T value) { return double(float(value)); }
template <> __device__ double as_double<double>(double value) { return value; }

#define TILE  64   // output tile edge; 256 threads hold 4x4 elements each
#define DEPTH 16   // elements of K staged at a time

/* sums += the product of two staged panels.  A thread owns rows ty + 16*i and columns tx + 16*j. */
static __device__ void multiply_panels(double sums[4][4], const double left[DEPTH][TILE + 1],
                                       const double right[DEPTH][TILE + 1], int ty, int tx)
{
    for (int k = 0; k < DEPTH; k++) {
        double l[4], r[4];
        for (int i = 0; i < 4; i++) {
            l[i] = left[k][ty + 16 * i];
            r[i] = right[k][tx + 16 * i];
        }
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++)
                sums[i][j] += l[i] * r[j];
    }
}

/* Stages `rows` x DEPTH of a row-major matrix with K columns, transposed; zero outside the matrix. */
template <typename T>
static __device__ void stage_rows(double panel[DEPTH][TILE + 1], const T *matrix, int rows, int K, int k0)
{
    for (int e = threadIdx.x; e < TILE * DEPTH; e += blockDim.x) {
        int row = e / DEPTH, k = e % DEPTH;
        panel[k][row] = row < rows && k0 + k < K ? as_double(matrix[(size_t)row * K + k0 + k]) : 0.0;
    }
}

static __device__ void store_tile(double *out, const double sums[4][4], int rows, int columns, int N, int ty, int tx)
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (ty + 16 * i < rows && tx + 16 * j < columns) out[(size_t)(ty + 16 * i) * N + tx + 16 * j] = sums[i][j];
}

/* Stages DEPTH x `columns` of a row-major K x N matrix; zero outside. */
static __device__ void stage_columns(double panel[DEPTH][TILE + 1], const kl_t_weight *matrix, int columns, int N,
                                     int K, int k0)
{
    for (int e = threadIdx.x; e < TILE * DEPTH; e += blockDim.x) {
        int k = e / TILE, column = e % TILE;
        panel[k][column] = column < columns && k0 + k < K ? as_double(matrix[(size_t)(k0 + k) * N + column]) : 0.0;
    }
}

/* Finds the group of row tile `tile` and the first row of the tile; false when there is no such tile. */
static __device__ bool locate_tile(int *group, int *row, const int *offsets, int G, int tile)
{
    for (int g = 0; g < G; g++) {
        int tiles = (offsets[g + 1] - offsets[g] + TILE - 1) / TILE;
        if (tile < tiles) {
            *group = g;
            *row = offsets[g] + tile * TILE;
            return true;
        }
        tile -= tiles;
    }
    return false;
}

extern "C" __global__ void __launch_bounds__(256)
    grouped_mm_oracle(const kl_t_x *x, const kl_t_weight *weight, const int *offsets, double *output, int G, int N,
                        int K)
{
    __shared__ double left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];
    int               n0 = blockIdx.x * TILE, ty = threadIdx.x / 16, tx = threadIdx.x % 16, g, t0;
    double            sums[4][4] = {};
    if (!locate_tile(&g, &t0, offsets, G, blockIdx.y)) return;
    int                rows = offsets[g + 1] - t0;
    const kl_t_x      *tokens = x + (size_t)t0 * K;
    const kl_t_weight *columns = weight + (size_t)g * K * N + n0;
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        stage_rows(left, tokens, rows, K, k0);
        stage_columns(right, columns, N - n0, N, K, k0);
        __syncthreads();
        multiply_panels(sums, left, right, ty, tx);
        __syncthreads();
    }
    store_tile(output + (size_t)t0 * N + n0, sums, rows, N - n0, N, ty, tx);
}
