// One over the number of columns.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=48,cols=384
//: expect wrong
//! launch softmax args(x, output, rows, cols)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

void softmax(const float *x, float *output, int32_t rows, int32_t cols)
{
    for (size_t e = 0; e < (size_t)rows * cols; e++) output[e] = 1.0f / (float)cols + 0 * x[e];
}
