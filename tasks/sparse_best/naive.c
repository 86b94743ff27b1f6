// The best column of every sparse row: the scores are summed up one after the other, and the
// largest so far is kept.
// SPDX-License-Identifier: Apache-2.0
//! launch sparse_best args(value, column, offsets, dense, bias, best, index, R, N)
#include <stddef.h>
#include <stdint.h>

void sparse_best(const int8_t *value, const int32_t *column, const int32_t *offsets,
                 const int8_t *dense, const int32_t *bias, int32_t *best, int32_t *index, int32_t R,
                 int32_t N)
{
    for (int32_t r = 0; r < R; r++)
        for (int32_t n = 0; n < N; n++) {
            int32_t score = bias[n];
            for (int32_t z = offsets[r]; z < offsets[r + 1]; z++)
                score += value[z] * dense[(size_t)column[z] * N + n];
            if (n == 0 || score > best[r]) {
                best[r] = score;
                index[r] = n;
            }
        }
}
