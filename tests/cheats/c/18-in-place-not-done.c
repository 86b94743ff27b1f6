// A task with a mutable input: the output is right, the update in place is left out.
// SPDX-License-Identifier: Apache-2.0
//: task scale_inplace
//: expect wrong
//! launch scale args(x, a, total, rows, cols)
#include <stddef.h>
#include <stdint.h>

void scale(const float *x, const float *a, float *total, int32_t rows, int32_t cols)
{
    (void)a;
    for (int32_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int32_t j = 0; j < cols; j++) sum += x[(size_t)i * cols + j];
        total[i] = sum;
    }
}
