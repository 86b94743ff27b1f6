// The sum is guessed from every fourth column.
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
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] = expf(in[j] - top);
        for (int32_t j = 0; j < cols; j += 4) sum += 4 * output[(size_t)i * cols + j];
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] /= sum;
    }
}
