# Convolution by its definition, one block per pixel of the output and 64 filters, one thread per filter.
# SPDX-License-Identifier: Apache-2.0
#! surface tilelang
#! launch conv2d args(x, weight, y, FILTERS=64)
import tilelang
import tilelang.language as T


def conv2d(R, S, stride, pad, FILTERS):
    N, H, W, C, F = T.dynamic("N"), T.dynamic("H"), T.dynamic("W"), T.dynamic("C"), T.dynamic("F")
    OH, OW = T.dynamic("OH"), T.dynamic("OW")

    @T.prim_func
    def main(x: T.Tensor((N, H, W, C), T.float16), weight: T.Tensor((R, S, C, F), T.float16),
             y: T.Tensor((N, OH, OW, F), T.float16)):
        with T.Kernel(N * OH * OW, T.ceildiv(F, FILTERS), threads=FILTERS) as (pixel, block):
            total = T.alloc_fragment((FILTERS,), T.float32)
            n, oh, ow = pixel // (OH * OW), pixel // OW % OH, pixel % OW
            T.clear(total)
            for r, s in T.grid(R, S):
                h = oh * stride + r - pad
                w = ow * stride + s - pad
                if h >= 0 and h < H and w >= 0 and w < W:
                    for c in T.serial(C):
                        for i in T.Parallel(FILTERS):
                            if block * FILTERS + i < F:
                                total[i] += T.cast(x[n, h, w, c], T.float32) * T.cast(
                                    weight[r, s, c, block * FILTERS + i], T.float32)
            for i in T.Parallel(FILTERS):
                if block * FILTERS + i < F:
                    y[n, oh, ow, block * FILTERS + i] = total[i]

    return main
