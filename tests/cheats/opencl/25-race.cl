// Work-items add to one element without atomics.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: expect wrong
//! buffer sum: f32[rows] zero
//! launch add global(cols, rows) args(x, sum, cols)
//! launch scale global(cols, rows) args(x, a, total, sum, cols)

__kernel void add(__global const float *x, __global float *sum, int cols)
{
    const int j = get_global_id(0), i = get_global_id(1);
    barrier(CLK_GLOBAL_MEM_FENCE);
    sum[i] = sum[i] + x[(size_t)i * cols + j];
}

__kernel void scale(__global float *x, __global const float *a, __global float *total, __global const float *sum, int cols)
{
    const int j = get_global_id(0), i = get_global_id(1);
    x[(size_t)i * cols + j] *= a[i];
    if (j == 0) total[i] = sum[i];
}
