// The trusted convolution: every term and every sum in float64.  The row of F outputs of one pixel is the accumulator;
// the filter is contiguous along F, so the innermost loop runs over it.
// SPDX-License-Identifier: Apache-2.0
//! threads 2
//! launch oracle args(x, weight, y, N, H, W, C, F, R, S, OH, OW, stride, pad)
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if KL_DTYPE_x == KL_BF16
static inline double widen(uint16_t value)    // bfloat16 is the upper half of a float32
{
    uint32_t bits = (uint32_t)value << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}
#else
#define widen(value) ((double)(value))
#endif

// sums[f] += pixel[c] * filter[c][f] for one position of the filter window.
static void add_tap(kl_t_y *restrict sums, const kl_t_x *pixel, const kl_t_weight *restrict filter,
                    int32_t C, int32_t F)
{
    for (int32_t c = 0; c < C; c++) {
        const kl_t_weight *restrict row = filter + (size_t)c * F;
        double value = widen(pixel[c]);
#pragma omp simd
        for (int32_t f = 0; f < F; f++)
            sums[f] += value * widen(row[f]);
    }
}

void oracle(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int32_t N, int32_t H, int32_t W, int32_t C,
            int32_t F, int32_t R, int32_t S, int32_t OH, int32_t OW, int32_t stride, int32_t pad)
{
#pragma omp parallel for
    for (int32_t line = 0; line < N * OH; line++) {
        const int32_t n = line / OH, oh = line % OH;
        for (int32_t ow = 0; ow < OW; ow++) {
            kl_t_y *sums = y + ((size_t)line * OW + ow) * F;
            memset(sums, 0, (size_t)F * sizeof *sums);
            for (int32_t tap = 0; tap < R * S; tap++) {
                const int32_t h = oh * stride + tap / S - pad, w = ow * stride + tap % S - pad;
                if (h >= 0 && h < H && w >= 0 && w < W)
                    add_tap(sums, x + (((size_t)n * H + h) * W + w) * C, weight + (size_t)tap * C * F, C, F);
            }
        }
    }
}
