// Convolution, one work-item per element of the output, every operand read from global memory.  float32 only.
// SPDX-License-Identifier: Apache-2.0
//! launch conv2d global(cdiv(F, 32) * 32, OW, N * OH) local(32, 1, 1) \
//!        args(x, weight, y, N, H, W, C, F, R, S, OH, OW, stride, pad)

__kernel void conv2d(__global const kl_t_x *x, __global const kl_t_weight *weight, __global kl_t_y *y,
                     int N, int H, int W, int C, int F, int R, int S, int OH, int OW, int stride, int pad)
{
    const int f = get_global_id(0);
    const int ow = get_global_id(1);
    const int oh = get_global_id(2) % OH, n = get_global_id(2) / OH;
    if (f >= F)
        return;
    float sum = 0.0f;
    for (int r = 0; r < R; r++)
        for (int s = 0; s < S; s++) {
            const int h = oh * stride + r - pad, w = ow * stride + s - pad;
            if (h < 0 || h >= H || w < 0 || w >= W)
                continue;
            for (int c = 0; c < C; c++)
                sum += x[(((size_t)n * H + h) * W + w) * C + c] * weight[(((size_t)r * S + s) * C + c) * F + f];
        }
    y[(((size_t)n * OH + oh) * OW + ow) * F + f] = sum;
}
