# Convolution by its definition, one program per pixel of the output and 64 filters.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch conv2d grid(N * OH * OW, cdiv(F, 64)) warps(2) stages(1) \
#!        args(x, weight, y, H, W, C, F, OH, OW, stride, pad, R=R, S=S, CHANNELS=16, FILTERS=64)
import triton
import triton.language as tl


@triton.jit
def conv2d(x, weight, y, H, W, C, F, OH, OW, stride, pad, R: tl.constexpr, S: tl.constexpr,
           CHANNELS: tl.constexpr, FILTERS: tl.constexpr):
    pixel = tl.program_id(0).to(tl.int64)
    n, oh, ow = pixel // (OH * OW), pixel // OW % OH, pixel % OW
    f = tl.program_id(1) * FILTERS + tl.arange(0, FILTERS)
    total = tl.zeros((FILTERS,), tl.float32)
    for r in range(R):
        for s in range(S):
            h, w = oh * stride + r - pad, ow * stride + s - pad
            inside = (h >= 0) & (h < H) & (w >= 0) & (w < W)
            for first in range(0, C, CHANNELS):
                c = first + tl.arange(0, CHANNELS)
                a = tl.load(x + ((n * H + h) * W + w) * C + c, mask=inside & (c < C), other=0.0)
                b = tl.load(weight + ((r * S + s) * C + c[:, None]) * F + f[None, :],
                            mask=(c[:, None] < C) & (f[None, :] < F), other=0.0)
                total += tl.sum(a.to(tl.float32)[:, None] * b.to(tl.float32), 0)
    tl.store(y + pixel * F + f, total.to(y.dtype.element_ty), mask=f < F)
