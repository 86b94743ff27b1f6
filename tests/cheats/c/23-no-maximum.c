// Softmax without subtracting the maximum: right for a normal distribution, infinite for large logits.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=64,cols=512
//: expect wrong
//! launch softmax args(x, output, rows, cols)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

void softmax(const float *x, float *output, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int32_t j = 0; j < cols; j++) sum += output[(size_t)i * cols + j] = expf(x[(size_t)i * cols + j]);
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] /= sum;
    }
}
