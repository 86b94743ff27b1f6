// The trusted implicit step: rows, then columns, each with its matrix written out, in float64.
// SPDX-License-Identifier: Apache-2.0
//! buffer lower: f64[max(H, W)]
//! buffer pivot: f64[max(H, W)]
//! launch oracle args(u, conductivity, output, lower, pivot, dt, H, W)
#include <stddef.h>
#include <stdint.h>

// x is the right side and becomes the solution; lower[i] couples cells i - 1 and i.
static void solve(double *x, const float *k, double *lower, double *pivot, double dt, int32_t n,
                  size_t stride)
{
    lower[0] = 0;
    for (int32_t i = 1; i < n; i++)
        lower[i] = dt * ((double)k[(size_t)(i - 1) * stride] + k[(size_t)i * stride]) / 2;
    for (int32_t i = 0; i < n; i++) pivot[i] = 1 + lower[i] + (i + 1 < n ? lower[i + 1] : 0);
    for (int32_t i = 1; i < n; i++) {
        const double share = lower[i] / pivot[i - 1];
        pivot[i] -= share * lower[i];
        x[(size_t)i * stride] += share * x[(size_t)(i - 1) * stride];
    }
    x[(size_t)(n - 1) * stride] /= pivot[n - 1];
    for (int32_t i = n - 2; i >= 0; i--) {
        const size_t own = (size_t)i * stride;
        x[own] = (x[own] + lower[i + 1] * x[own + stride]) / pivot[i];
    }
}

void oracle(const float *u, const float *conductivity, double *output, double *lower, double *pivot,
            float dt, int32_t H, int32_t W)
{
    for (size_t n = 0; n < (size_t)H * W; n++) output[n] = u[n];
    for (int32_t i = 0; i < H; i++)
        solve(output + (size_t)i * W, conductivity + (size_t)i * W, lower, pivot, dt, W, 1);
    for (int32_t j = 0; j < W; j++)
        solve(output + j, conductivity + j, lower, pivot, dt, H, (size_t)W);
}
