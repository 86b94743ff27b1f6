// A moved and filtered picture, as it is defined: every output asks for its nine moved pixels, and
// each of them is read from the picture anew, between four neighbours.
// SPDX-License-Identifier: Apache-2.0
//! launch flow_filter args(image, flow, filter, bias, output, C, H, W)
#include <math.h>
#include <stddef.h>
#include <stdint.h>

static float held(float place, int32_t size)
{
    return fminf(fmaxf(place, 0), (float)(size - 1));
}

static float moved(const float *image, const float *flow, int32_t i, int32_t j, int32_t H,
                   int32_t W)
{
    if (i < 0 || i >= H || j < 0 || j >= W) return 0;
    const size_t own = ((size_t)i * W + j) * 2;
    const float x = held((float)j + flow[own], W), y = held((float)i + flow[own + 1], H);
    const int32_t left = (int32_t)floorf(x), top = (int32_t)floorf(y);
    const int32_t right = left + 1 < W ? left + 1 : left, bottom = top + 1 < H ? top + 1 : top;
    const float a = x - (float)left, b = y - (float)top;
    const float above =
        image[(size_t)top * W + left] * (1 - a) + image[(size_t)top * W + right] * a;
    const float below =
        image[(size_t)bottom * W + left] * (1 - a) + image[(size_t)bottom * W + right] * a;
    return above * (1 - b) + below * b;
}

void flow_filter(const float *image, const float *flow, const float *filter, const float *bias,
                 float *output, int32_t C, int32_t H, int32_t W)
{
    for (int32_t c = 0; c < C; c++)
        for (int32_t i = 0; i < H; i++)
            for (int32_t j = 0; j < W; j++) {
                float sum = bias[c];
                for (int32_t p = 0; p < 3; p++)
                    for (int32_t q = 0; q < 3; q++)
                        sum += filter[c * 9 + p * 3 + q] * moved(image + (size_t)c * H * W, flow,
                                                                 i + p - 1, j + q - 1, H, W);
                output[((size_t)c * H + i) * W + j] = sum;
            }
}
