// A mutable input is updated where it lies.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: control
//! launch scale args(x, a, total, rows, cols)
#include <stddef.h>
#include <stdint.h>

void scale(float *x, const float *a, float *total, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        float *row = x + (size_t)i * (size_t)cols;
        float sum = 0;
        for (int32_t j = 0; j < cols; j++) sum += row[j];
        for (int32_t j = 0; j < cols; j++) row[j] = a[i] * row[j];
        total[i] = sum;
    }
}
