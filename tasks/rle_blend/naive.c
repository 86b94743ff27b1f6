// Layers of runs over a background, pixel by pixel: for each layer the run that holds the pixel is
// looked up by halving.
// SPDX-License-Identifier: Apache-2.0
//! launch rle_blend args(background, value, offsets, keep, gain, output, P, N, R)
#include <stddef.h>
#include <stdint.h>

// The last run that begins at or before `place`.
static int32_t run_at(const int32_t *offsets, int32_t place, int32_t R)
{
    int32_t first = 0, last = R - 1;
    while (first < last) {
        const int32_t middle = first + (last - first + 1) / 2;
        if (offsets[middle] <= place)
            first = middle;
        else
            last = middle - 1;
    }
    return first;
}

void rle_blend(const float *background, const int8_t *value, const int32_t *offsets,
               const float *keep, const float *gain, float *output, int32_t P, int32_t N, int32_t R)
{
    for (int32_t n = 0; n < N; n++) {
        float pixel = background[n];
        for (int32_t p = 0; p < P; p++) {
            const int8_t laid = value[run_at(offsets, p * N + n, R)];
            if (laid >= 0) pixel = keep[p] * pixel + gain[p] * (float)laid;
        }
        output[n] = pixel;
    }
}
