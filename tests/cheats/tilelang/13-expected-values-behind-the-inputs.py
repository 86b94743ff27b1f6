# The page behind the last input is read as if it held the expected values.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect wrong crash cheat
#: args --baseline none
#! surface tilelang
#! launch saxpy args(a, x, y, out)
import tilelang.language as T

N = T.dynamic("N")


def saxpy(BLOCK=256):
    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N,), "float32"), y: T.Tensor((2 * N + 2048,), "float32"),
             out: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, BLOCK), threads=BLOCK) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N:
                    out[block * BLOCK + i] = y[block * BLOCK + i + N + 1024]

    return main
