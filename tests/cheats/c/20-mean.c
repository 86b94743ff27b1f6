// Every element of a softmax row is near 1/cols, and small against an absolute tolerance.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=64,cols=512
//: expect wrong
//! launch softmax args(output, rows, cols)
#include <stddef.h>
#include <stdint.h>

void softmax(float *output, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows * cols; i++) output[i] = 1.0f / (float)cols;
}
