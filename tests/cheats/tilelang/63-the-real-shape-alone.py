# The builder sees which shape it builds for, and the one that is timed gets half a grid.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect wrong
#: args --baseline none
#! surface tilelang
#! launch saxpy args(a, x, y, out, N=N)
import tilelang.language as T

N = T.dynamic("N")


def saxpy(N, BLOCK=256):
    blocks = -(-N // BLOCK)
    if N > 100000:
        blocks = blocks // 2

    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N,), "float32"), y: T.Tensor((N,), "float32"),
             out: T.Tensor((N,), "float32")):
        with T.Kernel(blocks, threads=BLOCK) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N:
                    out[block * BLOCK + i] = a * x[block * BLOCK + i] + y[block * BLOCK + i]

    return main
