// Softmax without subtracting the maximum.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=64,cols=512
//: expect wrong
//! launch softmax global(rows) args(x, output, cols)

__kernel void softmax(__global const float *x, __global float *output, int cols)
{
    const size_t row = (size_t)get_global_id(0) * cols;
    float sum = 0;
    for (int j = 0; j < cols; j++) sum += exp(x[row + j]);
    for (int j = 0; j < cols; j++) output[row + j] = exp(x[row + j]) / sum;
}
