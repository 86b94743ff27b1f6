# The factor is made a value of the builder, so that a multiplication by a known number can be folded.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect no_compile
#: args --baseline none
#! surface tilelang
#! launch saxpy args(x, y, out, a=a)
import tilelang.language as T

N = T.dynamic("N")


def saxpy(a, BLOCK=256):
    @T.prim_func
    def main(x: T.Tensor((N,), "float32"), y: T.Tensor((N,), "float32"), out: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, BLOCK), threads=BLOCK) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N:
                    out[block * BLOCK + i] = a * x[block * BLOCK + i] + y[block * BLOCK + i]

    return main
