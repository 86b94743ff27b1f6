// Six launches that each do a little.
// SPDX-License-Identifier: Apache-2.0
//: task softmax
//: workload rows=48,cols=384
//: control
//! buffer top: f32[rows]
//! buffer sum: f32[rows]
//! launch first args(x, top, rows, cols)
//! launch largest args(x, top, rows, cols)
//! launch powers args(x, top, output, rows, cols)
//! launch clear args(sum, rows)
//! launch add args(output, sum, rows, cols)
//! launch softmax args(sum, output, rows, cols)
#include <stddef.h>
#include <stdint.h>
#include <math.h>

void first(const float *x, float *top, int32_t rows, int32_t cols) { for (int32_t i = 0; i < rows; i++) top[i] = x[(size_t)i * cols]; }
void largest(const float *x, float *top, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < cols; j++) top[i] = fmaxf(top[i], x[(size_t)i * cols + j]);
}
void powers(const float *x, const float *top, float *output, int32_t rows, int32_t cols)
{
    for (size_t e = 0; e < (size_t)rows * cols; e++) output[e] = expf(x[e] - top[e / (size_t)cols]);
}
void clear(float *sum, int32_t rows) { for (int32_t i = 0; i < rows; i++) sum[i] = 0; }
void add(const float *output, float *sum, int32_t rows, int32_t cols)
{
    for (size_t e = 0; e < (size_t)rows * cols; e++) sum[e / (size_t)cols] += output[e];
}
void softmax(const float *sum, float *output, int32_t rows, int32_t cols)
{
    for (size_t e = 0; e < (size_t)rows * cols; e++) output[e] /= sum[e / (size_t)cols];
}
