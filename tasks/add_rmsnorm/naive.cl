//! launch add_rmsnorm global(rows) args(x, residual, weight, eps, output, new_residual, rows, hidden)
/* new_residual = x + residual, output = RMSNorm(x + residual) * weight: one work item a row.  float32 only.
 * SPDX-License-Identifier: Apache-2.0 */
#if KL_DTYPE_x != KL_F32
#error "this kernel is written for float32"
#endif

__kernel void add_rmsnorm(__global const float *x, __global const float *residual, __global const float *weight,
                          float eps, __global float *output, __global float *new_residual, int rows, int hidden)
{
    int row = get_global_id(0);
    if (row >= rows) return;
    size_t base = (size_t)row * hidden;
    float  squares = 0.0f;
    for (int i = 0; i < hidden; i++) {
        float sum = x[base + i] + residual[base + i];
        new_residual[base + i] = sum;
        squares += sum * sum;
    }
    float scale = 1.0f / sqrt(squares / hidden + eps);
    for (int i = 0; i < hidden; i++)
        output[base + i] = (x[base + i] + residual[base + i]) * scale * weight[i];
}
