// A mutable input is updated where it lies.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//: args --baseline none
//! launch scale global(rows) args(x, a, total, cols)

__kernel void scale(__global float *x, __global const float *a, __global float *total, int cols)
{
    const int i = get_global_id(0);
    __global float *row = x + (size_t)i * cols;
    float sum = 0;
    for (int j = 0; j < cols; j++) sum += row[j];
    for (int j = 0; j < cols; j++) row[j] = a[i] * row[j];
    total[i] = sum;
}
