// The trusted layers: one walk over all places, run by run, on pixels in float64.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle args(background, value, offsets, keep, gain, output, P, N, R)
#include <stddef.h>
#include <stdint.h>

void oracle(const float *background, const int8_t *value, const int32_t *offsets, const float *keep,
            const float *gain, double *output, int32_t P, int32_t N, int32_t R)
{
    (void)P;    // offsets[R] is P * N
    for (int32_t n = 0; n < N; n++) output[n] = background[n];
    for (int32_t r = 0; r < R; r++)
        for (int32_t place = offsets[r]; place < offsets[r + 1]; place++) {
            const int32_t p = place / N;
            double *pixel = output + place % N;
            if (value[r] >= 0) *pixel = (double)keep[p] * *pixel + (double)gain[p] * value[r];
        }
}
