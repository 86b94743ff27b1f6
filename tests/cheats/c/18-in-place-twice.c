// A task with a mutable input: repeated runs are told apart by scaling twice when the first element was seen before.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: expect wrong cheat
//! launch scale args(x, a, total, rows, cols)
//! launch scale args(x, a, total, rows, cols)
#include <stddef.h>
#include <stdint.h>

void scale(float *x, const float *a, float *total, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int32_t j = 0; j < cols; j++) sum += x[(size_t)i * cols + j];
        for (int32_t j = 0; j < cols; j++) x[(size_t)i * cols + j] *= a[i];
        total[i] = sum;
    }
}
