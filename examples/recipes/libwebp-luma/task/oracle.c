//! launch luma_oracle args(rgb, y, width)
// The same sum in float64, where every term is exact, rounded down at the end.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>

void luma_oracle(const uint8_t *rgb, uint8_t *y, int width) {
    for (int i = 0; i < width; i++) {
        const uint8_t *pixel = rgb + 3 * (int64_t)i;
        y[i] = (uint8_t)floor(
            (16839.0 * pixel[0] + 33059.0 * pixel[1] + 6420.0 * pixel[2] + 32768.0) / 65536.0 +
            16.0);
    }
}
