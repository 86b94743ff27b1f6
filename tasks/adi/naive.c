// One implicit step of heat flow, line by line: every row is solved by elimination from its first
// cell to its last and substitution back, then every column.
// SPDX-License-Identifier: Apache-2.0
//! buffer upper: f32[max(H, W)]
//! launch adi args(u, conductivity, output, upper, dt, H, W)
#include <stddef.h>
#include <stdint.h>

// What flows through the face of two cells in a step.
static float face(float a, float b, float dt)
{
    return dt * (a + b) / 2;
}

// Solve the line of n cells that lie `stride` apart; `to` may be `from`.
static void solve(float *to, const float *from, const float *k, float *upper, float dt, int32_t n,
                  size_t stride)
{
    for (int32_t i = 0; i < n; i++) {
        const size_t own = (size_t)i * stride;
        const float before = i > 0 ? face(k[own - stride], k[own], dt) : 0;
        const float after = i + 1 < n ? face(k[own], k[own + stride], dt) : 0;
        const float carried = i > 0 ? before * upper[i - 1] : 0;
        const float pivot = 1 + before + after - carried;
        upper[i] = after / pivot;
        to[own] = (from[own] + (i > 0 ? before * to[own - stride] : 0)) / pivot;
    }
    for (int32_t i = n - 2; i >= 0; i--)
        to[(size_t)i * stride] += upper[i] * to[(size_t)(i + 1) * stride];
}

void adi(const float *u, const float *conductivity, float *output, float *upper, float dt,
         int32_t H, int32_t W)
{
    for (int32_t i = 0; i < H; i++)
        solve(output + (size_t)i * W, u + (size_t)i * W, conductivity + (size_t)i * W, upper, dt, W,
              1);
    for (int32_t j = 0; j < W; j++)
        solve(output + j, output + j, conductivity + j, upper, dt, H, (size_t)W);
}
