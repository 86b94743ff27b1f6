// Terms far below the largest are left at zero.
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
    for (int32_t i = 0; i < rows; i++) {
        const float *in = x + (size_t)i * cols;
        float top = in[0], sum = 0;
        for (int32_t j = 1; j < cols; j++) top = fmaxf(top, in[j]);
        for (int32_t j = 0; j < cols; j++) sum += output[(size_t)i * cols + j] = in[j] > top - 3 ? expf(in[j] - top) : 0;
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] /= sum;
    }
}
