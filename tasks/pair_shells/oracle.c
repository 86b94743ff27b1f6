// The trusted neighbours: every pair once, whole numbers of 64 bits, the densities in float64.
// SPDX-License-Identifier: Apache-2.0
//! launch oracle args(position, radius, density, shells, N, B)
#include <stddef.h>
#include <stdint.h>

void oracle(const int16_t *position, const int16_t *radius, double *density, int32_t *shells,
            int32_t N, int32_t B)
{
    for (int32_t b = 0; b < B; b++) shells[b] = 0;
    for (int32_t i = 0; i < N; i++) density[i] = 1;
    for (int32_t i = 0; i < N; i++)
        for (int32_t j = i + 1; j < N; j++) {
            const int64_t x = position[2 * i] - position[2 * j];
            const int64_t y = position[2 * i + 1] - position[2 * j + 1];
            const int64_t reach = radius[i] + radius[j], d = x * x + y * y, c = reach * reach;
            if (d >= c) continue;
            const double near = 1 - (double)d / (double)c;
            density[i] += near * near;
            density[j] += near * near;
            shells[d * B / c]++;
        }
}
