// Running sums of segments: each output is the one before it and one value more.
// adds: other:running_sum
// SPDX-License-Identifier: Apache-2.0
//
// Why it pays: one addition for each value.
// Needs: an operation that may be continued from the result before.
//! launch segscan args(values, offsets, output, S)
#include <stdint.h>

void segscan(const float *values, const int32_t *offsets, float *output, int32_t S)
{
    for (int32_t s = 0; s < S; s++) {
        float sum = 0;
        for (int32_t i = offsets[s]; i < offsets[s + 1]; i++)
            output[i] = sum += values[i];
    }
}
