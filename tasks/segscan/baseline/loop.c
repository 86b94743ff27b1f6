// What a C programmer writes for running sums of a ragged batch: one pass, one sum that starts again with each segment.
// SPDX-License-Identifier: Apache-2.0
//! launch loop args(values, offsets, output, S)
#include <stdint.h>

void loop(const float *values, const int32_t *offsets, float *output, int32_t S)
{
    for (int32_t s = 0; s < S; s++) {
        float sum = 0;
        for (int32_t i = offsets[s]; i < offsets[s + 1]; i++)
            output[i] = sum += values[i];
    }
}
