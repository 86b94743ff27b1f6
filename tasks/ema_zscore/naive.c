// Running scores channel by channel: each walks all steps with its own mean and variance.
// SPDX-License-Identifier: Apache-2.0
//! launch ema_zscore args(x, mark, decay, z, T, C)
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static float float_of_bf16(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void ema_zscore(const uint16_t *x, const uint8_t *mark, const float *decay, float *z, int32_t T,
                int32_t C)
{
    for (int32_t c = 0; c < C; c++) {
        float mean = 0, var = 1;
        for (int32_t t = 0; t < T; t++) {
            if (mark[t] == 0) {
                mean = 0;
                var = 1;
            }
            const float d = float_of_bf16(x[(size_t)t * C + c]) - mean;
            z[(size_t)t * C + c] = d / sqrtf(var + 1e-3f);
            mean += (1 - decay[c]) * d;
            var = decay[c] * (var + (1 - decay[c]) * d * d);
        }
    }
}
