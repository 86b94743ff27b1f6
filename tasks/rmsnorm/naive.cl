//! launch rmsnorm global(rows) args(x, weight, eps, output, rows, hidden)
/* RMSNorm over the last axis: one work item a row, two passes.  float32 only.
 * SPDX-License-Identifier: Apache-2.0 */
#if KL_DTYPE_x != KL_F32
#error "this kernel is written for float32"
#endif

__kernel void rmsnorm(__global const float *x, __global const float *weight, float eps, __global float *output,
                      int rows, int hidden)
{
    int row = get_global_id(0);
    if (row >= rows) return;
    __global const float *in = x + (size_t)row * hidden;
    __global float       *out = output + (size_t)row * hidden;
    float                 sum = 0.0f;
    for (int i = 0; i < hidden; i++)
        sum += in[i] * in[i];
    float scale = 1.0f / sqrt(sum / hidden + eps);
    for (int i = 0; i < hidden; i++)
        out[i] = in[i] * scale * weight[i];
}
