// Convolution, rung 1: one thread per element of the output, every operand read from global memory.
// Adds nothing: it is where the ladder begins.  Needs nothing, any shape.
// Measured on an H200: 594 us, 0.0262 x PyTorch's cuDNN.
// SPDX-License-Identifier: Apache-2.0
//! launch conv2d grid(cdiv(N * OH * OW * F, 256)) block(256) \
//!        args(x, weight, y, N, H, W, C, F, R, S, OH, OW, stride, pad)
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void conv2d(const kl_t_x *x, const kl_t_weight *weight, kl_t_y *y, int N, int H, int W, int C,
                                  int F, int R, int S, int OH, int OW, int stride, int pad)
{
    const long long element = (long long)blockIdx.x * 256 + threadIdx.x;
    if (element >= (long long)N * OH * OW * F)
        return;
    const int f = element % F, ow = element / F % OW, oh = element / F / OW % OH, n = element / F / OW / OH;
    float sum = 0;
    for (int r = 0; r < R; r++)
        for (int s = 0; s < S; s++) {
            const int h = oh * stride + r - pad, w = ow * stride + s - pad;
            if (h < 0 || h >= H || w < 0 || w >= W)
                continue;
            for (int c = 0; c < C; c++)
                sum += (float)x[(((size_t)n * H + h) * W + w) * C + c] *
                       (float)weight[(((size_t)r * S + s) * C + c) * F + f];
        }
    y[element] = (kl_t_y)sum;
}
