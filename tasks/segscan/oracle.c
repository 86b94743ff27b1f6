// The trusted running sums: one pass, in float64.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle args(values, offsets, output, S)
#include <stdint.h>

void oracle(const float *values, const int32_t *offsets, double *output, int32_t S)
{
    for (int32_t s = 0; s < S; s++) {
        double sum = 0;
        for (int32_t i = offsets[s]; i < offsets[s + 1]; i++)
            output[i] = sum += values[i];
    }
}
