//! launch rmsnorm grid(cdiv(rows, 256)) block(256) args(x, weight, eps, output, rows, hidden)
/* RMSNorm over the last axis: one thread a row, two passes, float32 inside.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void rmsnorm(const kl_t_x *x, const kl_t_weight *weight, float eps, kl_t_output *output, int rows,
                                   int hidden)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const kl_t_x *in = x + (size_t)row * hidden;
    kl_t_output  *out = output + (size_t)row * hidden;
    float         sum = 0.0f;
    for (int i = 0; i < hidden; i++)
        sum += float(in[i]) * float(in[i]);
    float scale = 1.0f / sqrtf(sum / hidden + eps);
    for (int i = 0; i < hidden; i++)
        out[i] = kl_t_output(float(in[i]) * scale * float(weight[i]));
}
