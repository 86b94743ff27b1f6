//! require 8 * (96 * (D + 1) + 32 * 33 + 96) <= smem_max
//! launch attention_oracle grid(cdiv(S, 32), HQ, B) block(16, 16) smem(8 * (96 * (D + 1) + 32 * 33 + 96)) \
//!        args(query, key, value, is_causal, output, HQ, HKV, S, D)
/* Attention in float64, for any head size that fits in shared memory.
 *
 * A block serves 32 query rows of one head and walks the keys 32 at a time with the running maximum and sum of online
 * softmax.  A thread computes a 2x2 piece of the scores and, for its two rows, every 16th column of the output.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define TILE 32

// Rows first..first+31 of one head as float64, zero past the end; a row takes D + 1 words to spread the banks.
template <typename T>
__device__ void load_rows(double *tile, const T *tensor, int first, int rows, int D)
{
    for (int n = threadIdx.y * 16 + threadIdx.x; n < TILE * D; n += 256) {
        const int row = n / D, d = n % D;
        tile[row * (D + 1) + d] = first + row < rows ? (double)(float)tensor[(size_t)(first + row) * D + d] : 0.0;
    }
}

// scores[32][33] = query . key / sqrt(D), minus infinity where the key is not visible to the row.
__device__ void score_tile(double *scores, const double *query, const double *key, int D, int row0, int key0,
                           int keys, int causal)
{
    double sum[2][2] = {};
    for (int d = 0; d < D; d++)
        for (int a = 0; a < 2; a++)
            for (int b = 0; b < 2; b++)
                sum[a][b] += query[(threadIdx.y + 16 * a) * (D + 1) + d] * key[(threadIdx.x + 16 * b) * (D + 1) + d];
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            const int i = threadIdx.y + 16 * a, j = threadIdx.x + 16 * b;
            const bool seen = key0 + j < keys && (!causal || key0 + j <= row0 + i);
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

extern "C" __global__ void attention_oracle(const kl_t_query *query, const kl_t_key *key, const kl_t_value *value,
                                            int is_causal, double *output, int HQ, int HKV, int S, int D)
{
    extern __shared__ double shared[];
    double *rows = shared, *sums = rows + TILE * (D + 1), *table = sums + TILE * (D + 1);
    double *scores = table + TILE * (D + 1), *largest = scores + TILE * 33, *total = largest + TILE;
    double *shrink = total + TILE;
    const int h = blockIdx.y, row0 = blockIdx.x * TILE, own = threadIdx.y * 16 + threadIdx.x;
    const size_t first = ((size_t)blockIdx.z * HQ + h) * S * D;
    const size_t head = ((size_t)blockIdx.z * HKV + h / (HQ / HKV)) * S * D;

    load_rows(rows, query + first, row0, S, D);
    for (int n = own; n < TILE * (D + 1); n += 256)
        sums[n] = 0.0;
    if (own < TILE)
        largest[own] = -INFINITY, total[own] = 0.0;
    for (int key0 = 0; key0 < (is_causal ? min(S, row0 + TILE) : S); key0 += TILE) {
        load_rows(table, key + head, key0, S, D);
        __syncthreads();
        score_tile(scores, rows, table, D, row0, key0, S, is_causal);
        __syncthreads();
        if (own < TILE)
            weigh_row(scores + own * 33, largest + own, total + own, shrink + own);
        load_rows(table, value + head, key0, S, D);
        __syncthreads();
        add_values(sums, scores, table, shrink, D);
        __syncthreads();
    }
    for (int n = own; n < TILE * D; n += 256) {
        const int row = n / D, d = n % D;
        if (row0 + row < S)
            output[first + (size_t)(row0 + row) * D + d] = sums[row * (D + 1) + d] / total[row];
    }
}
