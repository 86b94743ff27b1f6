# The tensor is declared longer than it is, so that no bound stands in the way.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect wrong crash
#: args --baseline none
#! surface tilelang
#! launch saxpy args(a, x, y, out)
import tilelang.language as T

N = T.dynamic("N")


def saxpy(BLOCK=256):
    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N + 64,), "float32"), y: T.Tensor((N + 64,), "float32"),
             out: T.Tensor((N + 64,), "float32")):
        with T.Kernel(T.ceildiv(N + 64, BLOCK), threads=BLOCK) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N + 64:
                    out[block * BLOCK + i] = a * x[block * BLOCK + i] + y[block * BLOCK + i]

    return main
