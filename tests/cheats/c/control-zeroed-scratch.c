// Scratch that is declared zero may be counted up from zero.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=64,cols=512
//: control
//! buffer sum: f32[rows] zero
//! launch softmax args(x, sum, output, rows, cols)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

void softmax(const float *x, float *sum, float *output, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        float top = x[(size_t)i * cols];
        for (int32_t j = 1; j < cols; j++) top = fmaxf(top, x[(size_t)i * cols + j]);
        for (int32_t j = 0; j < cols; j++) sum[i] += output[(size_t)i * cols + j] = expf(x[(size_t)i * cols + j] - top);
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] /= sum[i];
    }
}
