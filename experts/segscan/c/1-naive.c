// Running sums of segments as they are defined: each output adds up its segment from the first value to its own.
// adds: nothing; every rung above is measured from here
// SPDX-License-Identifier: Apache-2.0
//
// What limits it: work that grows with the square of a segment's length, one waiting addition at a time.
//! launch segscan args(values, offsets, output, S)
#include <stddef.h>
#include <stdint.h>

void segscan(const float *values, const int32_t *offsets, float *output, int32_t S)
{
    for (int32_t s = 0; s < S; s++)
        for (int32_t i = offsets[s]; i < offsets[s + 1]; i++) {
            float sum = 0;
            for (int32_t j = offsets[s]; j <= i; j++)
                sum += values[j];
            output[i] = sum;
        }
}
