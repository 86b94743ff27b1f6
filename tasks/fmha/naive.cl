// Attention by its definition, one work-item per query row and head; its scores wait in global memory.  float32 only.
// SPDX-License-Identifier: Apache-2.0
//! buffer scores: f32[total_q, H, total_kv]
//! launch fmha global(total_q, H) args(q, k, v, qo_offsets, kv_offsets, causal, output, scores, B, H, D, total_kv)

__kernel void fmha(__global const kl_t_q *q, __global const kl_t_k *k, __global const kl_t_v *v,
                   __global const kl_t_qo_offsets *qo_offsets, __global const kl_t_kv_offsets *kv_offsets, int causal,
                   __global kl_t_output *output, __global float *scores, int B, int H, int D, int total_kv)
{
    const int token = get_global_id(0), h = get_global_id(1);
    int b = 0;
    while (qo_offsets[b + 1] <= token)
        b++;
    const int rows = qo_offsets[b + 1] - qo_offsets[b], keys = kv_offsets[b + 1] - kv_offsets[b];
    const int visible = causal ? token - qo_offsets[b] + 1 + keys - rows : keys;    // <= 0: the row is zero
    const size_t row = ((size_t)token * H + h) * D, first = ((size_t)kv_offsets[b] * H + h) * D;
    const float scale = 1.0f / sqrt((float)D);
    scores += ((size_t)token * H + h) * total_kv;

    float largest = -INFINITY, total = 0.0f;
    for (int j = 0; j < visible; j++) {
        float dot_product = 0.0f;
        for (int d = 0; d < D; d++)
            dot_product += q[row + d] * k[first + (size_t)j * H * D + d];
        scores[j] = dot_product * scale;
        largest = fmax(largest, scores[j]);
    }
    for (int j = 0; j < visible; j++) {
        scores[j] = exp(scores[j] - largest);
        total += scores[j];
    }
    for (int d = 0; d < D; d++) {
        float sum = 0.0f;
        for (int j = 0; j < visible; j++)
            sum += scores[j] * v[first + (size_t)j * H * D + d];
        output[row + d] = visible > 0 ? sum / total : 0.0f;
    }
}
