//! launch layernorm grid(cdiv(rows, 256)) block(256) args(x, weight, bias, eps, output, rows, hidden)
/* LayerNorm over the last axis: one thread a row, three passes, float32 inside.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void layernorm(const kl_t_x *x, const kl_t_weight *weight, const kl_t_bias *bias, float eps,
                                     kl_t_output *output, int rows, int hidden)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const kl_t_x *in = x + (size_t)row * hidden;
    kl_t_output  *out = output + (size_t)row * hidden;
    float         sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < hidden; i++)
        sum += float(in[i]);
    float mean = sum / hidden;
    for (int i = 0; i < hidden; i++)
        squares += (float(in[i]) - mean) * (float(in[i]) - mean);
    float scale = 1.0f / sqrtf(squares / hidden + eps);
    for (int i = 0; i < hidden; i++)
        out[i] = kl_t_output((float(in[i]) - mean) * scale * float(weight[i]) + float(bias[i]));
}
