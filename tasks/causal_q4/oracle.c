// The trusted causal mix: a weight is taken out once, and its row of v is added in float64.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle args(v, q, scale, zero, y, T, N, P, G)
#include <stddef.h>
#include <stdint.h>

void oracle(const float *v, const uint8_t *q, const float *scale, const uint8_t *zero, double *y,
            int32_t T, int32_t N, int32_t P, int32_t G)
{
    for (int32_t t = 0; t < T; t++) {
        double *out = y + (size_t)t * N;
        for (int32_t n = 0; n < N; n++) out[n] = 0;
        for (int32_t s = 0; s <= t; s++) {
            const int32_t stored = q[(size_t)t * P + s / 2] >> (s % 2 * 4) & 15;
            const size_t group = (size_t)t * G + s / 32;
            const double weight = (double)(stored - zero[group]) * scale[group];
            for (int32_t n = 0; n < N; n++) out[n] += weight * v[(size_t)s * N + n];
        }
    }
}
