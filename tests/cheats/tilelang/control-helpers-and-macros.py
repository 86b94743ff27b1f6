# A macro, a plain function of the file, constants and a comprehension.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: control
#: args --baseline none
#! surface tilelang
#! launch saxpy args(a, x, y, out)
import tilelang.language as T

N = T.dynamic("N")
THREADS = (128, 256)


def widest(sizes):
    return max(size for size in sizes)


@T.macro
def line(a, x, y, out, first, BLOCK):
    for i in T.Parallel(BLOCK):
        if first + i < N:
            out[first + i] = a * x[first + i] + y[first + i]


def saxpy():
    BLOCK = widest(THREADS)

    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N,), "float32"), y: T.Tensor((N,), "float32"),
             out: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, BLOCK), threads=BLOCK) as block:
            line(a, x, y, out, block * BLOCK, BLOCK)

    return main
