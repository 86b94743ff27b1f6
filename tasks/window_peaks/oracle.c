// The trusted peaks: first where the largest sample of a window stands, then the largest of all
// other samples of it.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle args(x, top, gap, place, R, S, L, O)
#include <stddef.h>
#include <stdint.h>

void oracle(const int16_t *x, int16_t *top, int32_t *gap, int32_t *place, int32_t R, int32_t S,
            int32_t L, int32_t O)
{
    for (int32_t r = 0; r < R; r++)
        for (int32_t o = 0; o < O; o++) {
            const int16_t *row = x + (size_t)r * S;
            int32_t at = o, rest = INT32_MIN;
            for (int32_t s = o + 1; s < o + L; s++)
                if (row[s] > row[at]) at = s;
            for (int32_t s = o; s < o + L; s++)
                if (s != at && row[s] > rest) rest = row[s];
            const size_t own = (size_t)r * O + o;
            top[own] = row[at];
            gap[own] = row[at] - rest;
            place[own] = at;
        }
}
