// Attention, rung 1: by its definition, one block per query row and head.  The row's scores fit in shared memory, a
// thread computes every 128th of them; then each thread sums the values of every 128th column.
// Adds nothing: it is where the ladder begins.  Needs 4 bytes of shared memory for every key, any D.
// Measured on an H200: 1.6 s, 0.001 x PyTorch's cuDNN attention.
// SPDX-License-Identifier: Apache-2.0
//! require 4 * total_kv <= smem_max
//! launch fmha grid(total_q, H) block(128) smem(4 * total_kv) \
//!        args(q, k, v, qo_offsets, kv_offsets, causal, output, B, H, D)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void fmha(const kl_t_q *q, const kl_t_k *k, const kl_t_v *v, const kl_t_qo_offsets *qo_offsets,
                                const kl_t_kv_offsets *kv_offsets, int causal, kl_t_output *output,
                                int B, int H, int D)
{
    extern __shared__ float scores[];
    const int token = blockIdx.x, h = blockIdx.y;
    int b = 0;
    while (qo_offsets[b + 1] <= token)
        b++;
    const int rows = qo_offsets[b + 1] - qo_offsets[b], keys = kv_offsets[b + 1] - kv_offsets[b];
    const int visible = causal ? token - qo_offsets[b] + 1 + keys - rows : keys;    // <= 0: the row is zero
    const size_t row = ((size_t)token * H + h) * D, first = ((size_t)kv_offsets[b] * H + h) * D;
    const float scale = 1.0f / sqrtf((float)D);

    for (int j = threadIdx.x; j < visible; j += 128) {
        float dot = 0.0f;
        for (int d = 0; d < D; d++)
            dot += (float)q[row + d] * (float)k[first + (size_t)j * H * D + d];
        scores[j] = dot * scale;
    }
    __syncthreads();
    float largest = -INFINITY, total = 0.0f;
    for (int j = 0; j < visible; j++)    // every thread reads all scores: no reduction across threads
        largest = fmaxf(largest, scores[j]);
    __syncthreads();
    for (int j = threadIdx.x; j < visible; j += 128)
        scores[j] = expf(scores[j] - largest);
    __syncthreads();
    for (int j = 0; j < visible; j++)
        total += scores[j];
    for (int d = threadIdx.x; d < D; d += 128) {
        float sum = 0.0f;
        for (int j = 0; j < visible; j++)
            sum += scores[j] * (float)v[first + (size_t)j * H * D + d];
        output[row + d] = (kl_t_output)(visible > 0 ? sum / total : 0.0f);
    }
}
