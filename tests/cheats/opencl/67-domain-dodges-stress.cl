// Softmax without its maximum, and a declared domain that leaves out the tiny and the hidden shapes.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=64,cols=640
//: expect wrong refused
//: args --baseline none
//! require rows == 64
//! require cols == 640
//! launch softmax global(rows) args(x, output, cols)

__kernel void softmax(__global const float *x, __global float *output, int cols)
{
    const size_t row = (size_t)get_global_id(0) * cols;
    float sum = 0;
    for (int j = 0; j < cols; j++) sum += exp(x[row + j]);
    for (int j = 0; j < cols; j++) output[row + j] = exp(x[row + j]) / sum;
}
