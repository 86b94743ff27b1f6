// The trusted running scores: step by step over all channels, means and variances in float64.
// SPDX-License-Identifier: Apache-2.0
//! buffer mean: f64[C]
//! buffer var: f64[C]
//! launch oracle args(x, mark, decay, z, mean, var, T, C)
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static double double_of_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void oracle(const uint16_t *x, const uint8_t *mark, const float *decay, double *z, double *mean,
            double *var, int32_t T, int32_t C)
{
    for (int32_t t = 0; t < T; t++)
        for (int32_t c = 0; c < C; c++) {
            if (t == 0 || mark[t] == 0) {
                mean[c] = 0;
                var[c] = 1;
            }
            const double a = decay[c], d = double_of_bf16(x[(size_t)t * C + c]) - mean[c];
            z[(size_t)t * C + c] = d / sqrt(var[c] + 1e-3);
            mean[c] += (1 - a) * d;
            var[c] = a * (var[c] + (1 - a) * d * d);
        }
}
