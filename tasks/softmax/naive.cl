//! launch softmax global(rows) args(x, output, rows, cols)
/* Softmax over the last axis: one work item a row, three passes.  float32 only.
 * SPDX-License-Identifier: Apache-2.0 */
#if KL_DTYPE_x != KL_F32
#error "this kernel is written for float32"
#endif

__kernel void softmax(__global const float *x, __global float *output, int rows, int cols)
{
    int row = get_global_id(0);
    if (row >= rows) return;
    __global const float *in = x + (size_t)row * cols;
    __global float       *out = output + (size_t)row * cols;
    float                 largest = -INFINITY, sum = 0.0f;
    for (int i = 0; i < cols; i++)
        largest = fmax(largest, in[i]);
    for (int i = 0; i < cols; i++)
        sum += exp(in[i] - largest);
    for (int i = 0; i < cols; i++)
        out[i] = exp(in[i] - largest) / sum;
}
