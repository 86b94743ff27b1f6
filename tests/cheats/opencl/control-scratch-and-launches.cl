// Three launches that hand a row's maximum and sum on through declared scratch.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=64,cols=512
//: control
//: args --baseline none
//! buffer top: f32[rows]
//! buffer sum: f32[rows]
//! launch find_top global(rows) args(x, top, cols)
//! launch find_sum global(rows) args(x, top, sum, cols)
//! launch divide global(cols, rows) args(x, top, sum, output, cols)

__kernel void find_top(__global const float *x, __global float *top, int cols)
{
    const int i = get_global_id(0);
    float most = x[(size_t)i * cols];
    for (int j = 1; j < cols; j++) most = fmax(most, x[(size_t)i * cols + j]);
    top[i] = most;
}

__kernel void find_sum(__global const float *x, __global const float *top, __global float *sum, int cols)
{
    const int i = get_global_id(0);
    float all = 0;
    for (int j = 0; j < cols; j++) all += exp(x[(size_t)i * cols + j] - top[i]);
    sum[i] = all;
}

__kernel void divide(__global const float *x, __global const float *top, __global const float *sum, __global float *output, int cols)
{
    const int j = get_global_id(0), i = get_global_id(1);
    output[(size_t)i * cols + j] = exp(x[(size_t)i * cols + j] - top[i]) / sum[i];
}
