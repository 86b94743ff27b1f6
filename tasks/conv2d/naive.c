// Convolution, one dot product over the filter window per element of the output, seven plain loops.
// SPDX-License-Identifier: Apache-2.0
//! launch conv2d args(x, weight, y, N, H, W, C, F, R, S, OH, OW, stride, pad)
#include <stddef.h>
#include <stdint.h>

#if KL_DTYPE_x == KL_BF16
#error "this kernel has no bfloat16 arithmetic"
#endif

void conv2d(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int32_t N, int32_t H, int32_t W, int32_t C,
            int32_t F, int32_t R, int32_t S, int32_t OH, int32_t OW, int32_t stride, int32_t pad)
{
    for (int32_t n = 0; n < N; n++)
        for (int32_t oh = 0; oh < OH; oh++)
            for (int32_t ow = 0; ow < OW; ow++)
                for (int32_t f = 0; f < F; f++) {
                    float sum = 0;
                    for (int32_t r = 0; r < R; r++)
                        for (int32_t s = 0; s < S; s++) {
                            int32_t h = oh * stride + r - pad, w = ow * stride + s - pad;
                            if (h < 0 || h >= H || w < 0 || w >= W)
                                continue;
                            for (int32_t c = 0; c < C; c++)
                                sum += (float)x[(((size_t)n * H + h) * W + w) * C + c] *
                                       (float)weight[(((size_t)r * S + s) * C + c) * F + f];
                        }
                    y[(((size_t)n * OH + oh) * OW + ow) * F + f] = (kl_t_y)sum;
                }
}
