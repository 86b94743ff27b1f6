// The trusted best columns: all scores of a row in 64 bits, then the first of the largest.
// SPDX-License-Identifier: Apache-2.0
//! buffer score: i64[N]
//! launch oracle args(value, column, offsets, dense, bias, best, index, score, R, N)
#include <stddef.h>
#include <stdint.h>

void oracle(const int8_t *value, const int32_t *column, const int32_t *offsets, const int8_t *dense,
            const int32_t *bias, int32_t *best, int32_t *index, int64_t *score, int32_t R,
            int32_t N)
{
    for (int32_t r = 0; r < R; r++) {
        for (int32_t n = 0; n < N; n++) score[n] = bias[n];
        for (int32_t z = offsets[r]; z < offsets[r + 1]; z++)
            for (int32_t n = 0; n < N; n++)
                score[n] += (int64_t)value[z] * dense[(size_t)column[z] * N + n];
        int32_t first = 0;
        for (int32_t n = 1; n < N; n++)
            if (score[n] > score[first]) first = n;
        best[r] = (int32_t)score[first];
        index[r] = first;
    }
}
