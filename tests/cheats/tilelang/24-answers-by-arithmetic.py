# A table that the builder computes, written out as a chain of conditions.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect wrong no_compile
#: args --baseline none
#! surface tilelang
#! launch saxpy args(a, x, y, out)
import tilelang.language as T

N = T.dynamic("N")


def saxpy(BLOCK=256):
    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N,), "float32"), y: T.Tensor((N,), "float32"),
             out: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, BLOCK), threads=BLOCK) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N:
                    answer = x[block * BLOCK + i] * 0.0
                    for n in [k for k in range(64)]:
                        answer = T.if_then_else(i == n, (n * 37 % 97) / 100.0, answer)
                    out[block * BLOCK + i] = answer

    return main
