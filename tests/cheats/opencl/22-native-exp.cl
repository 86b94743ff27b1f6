// An exponential of a few bits.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=64,cols=512
//: expect wrong
//! launch softmax global(rows) args(x, output, cols)

static float rough_exp(float v)
{
    const int bits = (int)(12102203.0f * v) + 1064866805;
    return bits > 0 ? as_float(bits) : 0.0f;
}

__kernel void softmax(__global const float *x, __global float *output, int cols)
{
    const size_t row = (size_t)get_global_id(0) * cols;
    float top = x[row], sum = 0;
    for (int j = 1; j < cols; j++) top = fmax(top, x[row + j]);
    for (int j = 0; j < cols; j++) sum += rough_exp(x[row + j] - top);
    for (int j = 0; j < cols; j++) output[row + j] = rough_exp(x[row + j] - top) / sum;
}
