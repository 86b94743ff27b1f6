// The trusted moved and filtered picture: each channel is moved once, then filtered, in float64.
// SPDX-License-Identifier: Apache-2.0
//! buffer moved: f64[H, W]
//! launch oracle args(image, flow, filter, bias, output, moved, C, H, W)
#include <math.h>
#include <stddef.h>
#include <stdint.h>

static double pixel(const float *image, double x, double y, int32_t H, int32_t W)
{
    x = fmin(fmax(x, 0), W - 1);
    y = fmin(fmax(y, 0), H - 1);
    const int32_t left = (int32_t)x, top = (int32_t)y;
    const int32_t right = left + 1 < W ? left + 1 : left, bottom = top + 1 < H ? top + 1 : top;
    const double above = (1 - (x - left)) * image[(size_t)top * W + left] +
                         (x - left) * image[(size_t)top * W + right];
    const double below = (1 - (x - left)) * image[(size_t)bottom * W + left] +
                         (x - left) * image[(size_t)bottom * W + right];
    return (1 - (y - top)) * above + (y - top) * below;
}

static double filtered(const double *moved, const float *filter, int32_t i, int32_t j, int32_t H,
                       int32_t W)
{
    double sum = 0;
    for (int32_t p = -1; p <= 1; p++)
        for (int32_t q = -1; q <= 1; q++)
            if (i + p >= 0 && i + p < H && j + q >= 0 && j + q < W)
                sum += filter[(p + 1) * 3 + q + 1] * moved[(size_t)(i + p) * W + j + q];
    return sum;
}

void oracle(const float *image, const float *flow, const float *filter, const float *bias,
            double *output, double *moved, int32_t C, int32_t H, int32_t W)
{
    for (int32_t c = 0; c < C; c++) {
        const size_t plane = (size_t)c * H * W;
        for (int32_t i = 0; i < H; i++)
            for (int32_t j = 0; j < W; j++) {
                const size_t n = (size_t)i * W + j;
                moved[n] = pixel(image + plane, (double)j + flow[2 * n],
                                 (double)i + flow[2 * n + 1], H, W);
            }
        for (int32_t i = 0; i < H; i++)
            for (int32_t j = 0; j < W; j++)
                output[plane + (size_t)i * W + j] =
                    bias[c] + filtered(moved, filter + c * 9, i, j, H, W);
    }
}
