// Neighbours in the plane by asking every point for every other one; a pair is counted by the
// first of the two.
// SPDX-License-Identifier: Apache-2.0
//! launch pair_shells args(position, radius, density, shells, N, B)
#include <stddef.h>
#include <stdint.h>

void pair_shells(const int16_t *position, const int16_t *radius, float *density, int32_t *shells,
                 int32_t N, int32_t B)
{
    for (int32_t b = 0; b < B; b++) shells[b] = 0;
    for (int32_t i = 0; i < N; i++) {
        float sum = 1;
        for (int32_t j = 0; j < N; j++) {
            if (i == j) continue;
            const int32_t x = position[2 * i] - position[2 * j];
            const int32_t y = position[2 * i + 1] - position[2 * j + 1];
            const int32_t reach = radius[i] + radius[j], d = x * x + y * y, c = reach * reach;
            if (d >= c) continue;
            const float near = 1 - (float)d / (float)c;
            sum += near * near;
            if (i < j) shells[(int64_t)d * B / c]++;
        }
        density[i] = sum;
    }
}
