// Three launches that hand a row's maximum and sum on through declared scratch.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=64,cols=512
//: control
//! buffer top: f32[rows]
//! buffer sum: f32[rows]
//! launch find_top args(x, top, rows, cols)
//! launch find_sum args(x, top, sum, rows, cols)
//! launch divide args(x, top, sum, output, rows, cols)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

void find_top(const float *x, float *top, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        top[i] = x[(size_t)i * cols];
        for (int32_t j = 1; j < cols; j++) top[i] = fmaxf(top[i], x[(size_t)i * cols + j]);
    }
}

void find_sum(const float *x, const float *top, float *sum, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        sum[i] = 0;
        for (int32_t j = 0; j < cols; j++) sum[i] += expf(x[(size_t)i * cols + j] - top[i]);
    }
}

void divide(const float *x, const float *top, const float *sum, float *output, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < cols; j++) output[(size_t)i * cols + j] = expf(x[(size_t)i * cols + j] - top[i]) / sum[i];
}
