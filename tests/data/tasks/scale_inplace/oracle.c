// The row's sum in float64, then the row scaled in place.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle args(x, a, total, rows, cols)
#include <stddef.h>
#include <stdint.h>

void oracle(float *x, const float *a, kl_t_total *total, int32_t rows, int32_t cols)
{
    for (int32_t i = 0; i < rows; i++) {
        float *row = x + (size_t)i * (size_t)cols;
        double sum = 0;
        for (int32_t j = 0; j < cols; j++) sum += (double)row[j];
        for (int32_t j = 0; j < cols; j++) row[j] = a[i] * row[j];
        total[i] = sum;
    }
}
