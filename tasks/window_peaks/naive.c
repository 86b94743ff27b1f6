// The peak of every window, by looking through the window: the largest so far, where it stands,
// and the largest of the others.
// SPDX-License-Identifier: Apache-2.0
//! launch window_peaks args(x, top, gap, place, R, S, L, O)
#include <stddef.h>
#include <stdint.h>

void window_peaks(const int16_t *x, int16_t *top, int32_t *gap, int32_t *place, int32_t R,
                  int32_t S, int32_t L, int32_t O)
{
    for (int32_t r = 0; r < R; r++)
        for (int32_t o = 0; o < O; o++) {
            const int16_t *window = x + (size_t)r * S + o;
            int32_t first = window[0], second = INT16_MIN, at = 0;
            for (int32_t l = 1; l < L; l++) {
                if (window[l] > first) {
                    second = first;
                    first = window[l];
                    at = l;
                } else if (window[l] > second) {
                    second = window[l];
                }
            }
            const size_t own = (size_t)r * O + o;
            top[own] = (int16_t)first;
            gap[own] = first - second;
            place[own] = o + at;
        }
}
