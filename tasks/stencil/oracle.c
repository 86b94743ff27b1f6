// The trusted heat flow: the same steps in float64 throughout.  Two plates take turns; the last step writes output.
// SPDX-License-Identifier: Apache-2.0
//! threads 2
//! buffer start: f64[H, W]
//! buffer other: f64[H, W]
//! launch oracle args(u, output, start, other, alpha, H, W, T)
#include <stddef.h>
#include <stdint.h>

static void one_row(double *to, const double *from, double alpha, int32_t i, int32_t H, int32_t W)
{
    const double *own = from + (size_t)i * W;
    const double *above = i > 0 ? own - W : own, *below = i + 1 < H ? own + W : own;
    for (int32_t j = 0; j < W; j++) {
        double left = own[j > 0 ? j - 1 : 0], right = own[j + 1 < W ? j + 1 : j];
        to[(size_t)i * W + j] = own[j] + alpha * (above[j] + below[j] + left + right - 4 * own[j]);
    }
}

void oracle(const float *u, double *output, double *start, double *other, float alpha, int32_t H, int32_t W, int32_t T)
{
    const double *from = start;
    for (size_t n = 0; n < (size_t)H * W; n++)
        start[n] = u[n];
    for (int32_t t = 0; t < T; t++) {
        double *to = (T - t) % 2 ? output : other;
#pragma omp parallel for
        for (int32_t i = 0; i < H; i++)
            one_row(to, from, alpha, i, H, W);
        from = to;
    }
}
