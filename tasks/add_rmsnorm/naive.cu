//! launch add_rmsnorm grid(cdiv(rows,256)) block(256) args(x,residual, weight, eps, output, new_residual, rows, hidden)
/* new_residual = x + residual, output = RMSNorm(x + residual) * weight: one thread a row, float32 inside.
 * The norm takes the float32 sum, not the rounded one that is stored.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void add_rmsnorm(const kl_t_x *x, const kl_t_residual *residual, const kl_t_weight *weight,
                                       float eps, kl_t_output *output, kl_t_new_residual *new_residual, int rows,
                                       int hidden)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    size_t base = (size_t)row * hidden;
    float  squares = 0.0f;
    for (int i = 0; i < hidden; i++) {
        float sum = float(x[base + i]) + float(residual[base + i]);
        new_residual[base + i] = kl_t_new_residual(sum);
        squares += sum * sum;
    }
    float scale = 1.0f / sqrtf(squares / hidden + eps);
    for (int i = 0; i < hidden; i++) {
        float sum = float(x[base + i]) + float(residual[base + i]);
        output[base + i] = kl_t_output(sum * scale * float(weight[i]));
    }
}
