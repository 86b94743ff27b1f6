//! launch luma args(rgb, y, width)
// One pixel after the other.  SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

void luma(const uint8_t *rgb, uint8_t *y, int width) {
    for (int i = 0; i < width; i++) {
        const uint8_t *pixel = rgb + 3 * (int64_t)i;
        y[i] = (uint8_t)((16839 * pixel[0] + 33059 * pixel[1] + 6420 * pixel[2] + (1 << 15) +
                          (16 << 16)) >>
                         16);
    }
}
