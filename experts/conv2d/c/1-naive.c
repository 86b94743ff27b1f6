// Convolution: one sum over the window per element, seven plain loops.
// adds: nothing; every rung above is measured from here
// SPDX-License-Identifier: Apache-2.0
//
// What limits it: each addition waits for the one before, and the weights are read with a stride of F.
// measured: oneDNN's time over this one's at cpu 0.0125 [0.0111, 0.0147] noisy, at cpu-large 0.0124 [0.0123, 0.0135];
// x86-64-v4/gcc-12, AMD EPYC.
//! launch conv2d args(x, weight, y, N, H, W, C, F, OH, OW)
#include <stddef.h>
#include <stdint.h>

#if KL_DTYPE_x != KL_F32
#error "this kernel computes in float32 only"
#endif

void conv2d(const float *x, const float *weight, float *y, int32_t N, int32_t H, int32_t W, int32_t C, int32_t F,
            int32_t OH, int32_t OW)
{
    for (int32_t n = 0; n < N; n++)
        for (int32_t oh = 0; oh < OH; oh++)
            for (int32_t ow = 0; ow < OW; ow++)
                for (int32_t f = 0; f < F; f++) {
                    float sum = 0;
                    for (int32_t r = 0; r < KL_R; r++)
                        for (int32_t s = 0; s < KL_S; s++) {
                            int32_t h = oh * KL_stride + r - KL_pad, w = ow * KL_stride + s - KL_pad;
                            if (h < 0 || h >= H || w < 0 || w >= W)
                                continue;
                            for (int32_t c = 0; c < C; c++)
                                sum += x[(((size_t)n * H + h) * W + w) * C + c] *
                                       weight[(((size_t)r * KL_S + s) * C + c) * F + f];
                        }
                    y[(((size_t)n * OH + oh) * OW + ow) * F + f] = sum;
                }
}
