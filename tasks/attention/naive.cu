//! require 4 * S <= smem_max
//! launch attention grid(S, HQ, B) block(128) smem(4 * S) args(query, key, value, is_causal, output, HQ, HKV, S, D)
/* Attention by its definition, one block per query row and head.  The row's scores lie in shared memory, a thread
 * computes every 128th of them; then each thread sums the values of every 128th column.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void attention(const kl_t_query *query, const kl_t_key *key, const kl_t_value *value,
                                     int is_causal, kl_t_output *output, int HQ, int HKV, int S, int D)
{
    extern __shared__ float scores[];
    int    i = blockIdx.x, h = blockIdx.y, b = blockIdx.z, visible = is_causal ? i + 1 : S;
    size_t row = (((size_t)b * HQ + h) * S + i) * D, head = ((size_t)b * HKV + h / (HQ / HKV)) * S * D;
    for (int j = threadIdx.x; j < visible; j += blockDim.x) {
        float dot = 0.0f;
        for (int d = 0; d < D; d++)
            dot += float(query[row + d]) * float(key[head + (size_t)j * D + d]);
        scores[j] = dot / sqrtf(float(D));
    }
    __syncthreads();
    float largest = -INFINITY, total = 0.0f;
    for (int j = 0; j < visible; j++)   // every thread reads all scores: no reduction across threads
        largest = fmaxf(largest, scores[j]);
    __syncthreads();
    for (int j = threadIdx.x; j < visible; j += blockDim.x)
        scores[j] = expf(scores[j] - largest);
    __syncthreads();
    for (int j = 0; j < visible; j++)
        total += scores[j];
    for (int d = threadIdx.x; d < D; d += blockDim.x) {
        float sum = 0.0f;
        for (int j = 0; j < visible; j++)
            sum += scores[j] * float(value[head + (size_t)j * D + d]);
        output[row + d] = kl_t_output(sum / total);
    }
}
