# The builder's own loop writes a million statements.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect no_compile
#: args --baseline none
#! surface tilelang
#! launch saxpy args(a, x, y, out)
import tilelang.language as T

N = T.dynamic("N")


def saxpy(BLOCK=256):
    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N,), "float32"), y: T.Tensor((N,), "float32"),
             out: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=32) as block:
            for j in [k for k in range(1000000)]:
                out[j] = a * x[j] + y[j]

    return main
