// The trusted attention on a GPU, all in float64 and for any head size that fits in shared memory.
//
// A block serves 32 query rows of one head and walks the keys 32 at a time with the running maximum and sum of online
// softmax.  A thread computes a 2x2 piece of the scores and, for its two rows, every 16th column of the output.
// Sequence lengths are data, so the grid is sized for one long sequence; blocks without rows leave at once.
// SPDX-License-Identifier: Apache-2.0
//! require 8 * (96 * (D + 1) + 32 * 33 + 96) <= smem_max
//! launch oracle grid(cdiv(total_q, 32), H, B) block(16, 16) smem(8 * (96 * (D + 1) + 32 * 33 + 96)) \
//!        args(q, k, v, qo_offsets, kv_offsets, causal, output, H, D)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define TILE 32

// Rows first..first+31 of one head as float64, zero past the end; a row takes D + 1 words to spread the banks.
template <typename T>
__device__ void load_rows(double *tile, const T *tensor, int first, int rows, int H, int D)
{
    for (int n = threadIdx.y * 16 + threadIdx.x; n < TILE * D; n += 256) {
        const int row = n / D, d = n % D;
        tile[row * (D + 1) + d] = first + row < rows ? (double)(float)tensor[(size_t)(first + row) * H * D + d] : 0.0;
    }
}

// scores[32][33] = query . key / sqrt(D), minus infinity where the key is not visible to the row.
__device__ void score_tile(double *scores, const double *query, const double *key, int D, int row0, int key0,
                           int keys, int lead, int causal)
{
    double sum[2][2] = {};
    for (int d = 0; d < D; d++)
        for (int a = 0; a < 2; a++)
            for (int b = 0; b < 2; b++)
                sum[a][b] += query[(threadIdx.y + 16 * a) * (D + 1) + d] * key[(threadIdx.x + 16 * b) * (D + 1) + d];
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            const int i = threadIdx.y + 16 * a, j = threadIdx.x + 16 * b;
            const bool seen = key0 + j < keys && (!causal || key0 + j <= row0 + i + lead);
            scores[i * 33 + j] = seen ? sum[a][b] / sqrt((double)D) : -INFINITY;
        }
}

// One thread per row: the scores become weights relative to the new maximum; `shrink` rescales what came before.
__device__ void weigh_row(double *scores, double *largest, double *total, double *shrink)
{
    double top = *largest, sum = 0.0;
    for (int j = 0; j < TILE; j++)
        top = fmax(top, scores[j]);
    *shrink = top == -INFINITY ? 1.0 : exp(*largest - top);
    for (int j = 0; j < TILE; j++) {
        scores[j] = scores[j] == -INFINITY ? 0.0 : exp(scores[j] - top);
        sum += scores[j];
    }
    *total = *total * *shrink + sum;
    *largest = top;
}

__device__ void add_values(double *sums, const double *scores, const double *value, const double *shrink, int D)
{
    for (int d = threadIdx.x; d < D; d += 16) {
        double first = sums[threadIdx.y * (D + 1) + d] * shrink[threadIdx.y];
        double second = sums[(threadIdx.y + 16) * (D + 1) + d] * shrink[threadIdx.y + 16];
        for (int j = 0; j < TILE; j++) {
            first += scores[threadIdx.y * 33 + j] * value[j * (D + 1) + d];
            second += scores[(threadIdx.y + 16) * 33 + j] * value[j * (D + 1) + d];
        }
        sums[threadIdx.y * (D + 1) + d] = first;
        sums[(threadIdx.y + 16) * (D + 1) + d] = second;
    }
}

extern "C" __global__ void oracle(const kl_t_q *q, const kl_t_k *k, const kl_t_v *v,
                                  const kl_t_qo_offsets *qo_offsets, const kl_t_kv_offsets *kv_offsets, int causal,
                                  kl_t_output *output, int H, int D)
{
    extern __shared__ double shared[];
    double *query = shared, *sums = query + TILE * (D + 1), *table = sums + TILE * (D + 1);
    double *scores = table + TILE * (D + 1), *largest = scores + TILE * 33, *total = largest + TILE;
    double *shrink = total + TILE;
    const int b = blockIdx.z, h = blockIdx.y, row0 = blockIdx.x * TILE, own = threadIdx.y * 16 + threadIdx.x;
    const int rows = qo_offsets[b + 1] - qo_offsets[b], keys = kv_offsets[b + 1] - kv_offsets[b];
    if (row0 >= rows)
        return;
    const size_t q_first = ((size_t)qo_offsets[b] * H + h) * D, kv_first = ((size_t)kv_offsets[b] * H + h) * D;

    load_rows(query, q + q_first, row0, rows, H, D);
    for (int n = own; n < TILE * (D + 1); n += 256)
        sums[n] = 0.0;
    if (own < TILE)
        largest[own] = -INFINITY, total[own] = 0.0;
    for (int key0 = 0; key0 < keys; key0 += TILE) {
        load_rows(table, k + kv_first, key0, keys, H, D);
        __syncthreads();
        score_tile(scores, query, table, D, row0, key0, keys, keys - rows, causal);
        __syncthreads();
        if (own < TILE)
            weigh_row(scores + own * 33, largest + own, total + own, shrink + own);
        load_rows(table, v + kv_first, key0, keys, H, D);
        __syncthreads();
        add_values(sums, scores, table, shrink, D);
        __syncthreads();
    }
    for (int n = own; n < TILE * D; n += 256) {
        const int row = n / D, d = n % D;
        if (row0 + row < rows)
            output[q_first + (size_t)(row0 + row) * H * D + d] =
                total[row] > 0.0 ? sums[row * (D + 1) + d] / total[row] : 0.0;
    }
}
