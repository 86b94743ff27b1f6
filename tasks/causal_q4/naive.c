// A causal mix by weights of four bits, one sum for each token and channel; every weight is taken
// out of its byte where it is used.
// SPDX-License-Identifier: Apache-2.0
//! launch causal_q4 args(v, q, scale, zero, y, T, N, P, G)
#include <stddef.h>
#include <stdint.h>

void causal_q4(const float *v, const uint8_t *q, const float *scale, const uint8_t *zero, float *y,
               int32_t T, int32_t N, int32_t P, int32_t G)
{
    for (int32_t t = 0; t < T; t++)
        for (int32_t n = 0; n < N; n++) {
            float sum = 0;
            for (int32_t s = 0; s <= t; s++) {
                const int32_t byte = q[(size_t)t * P + s / 2];
                const int32_t weight = s % 2 ? byte >> 4 : byte & 15;
                const size_t group = (size_t)t * G + s / 32;
                sum += (float)(weight - zero[group]) * scale[group] * v[(size_t)s * N + n];
            }
            y[(size_t)t * N + n] = sum;
        }
}
