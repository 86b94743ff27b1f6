# As many blocks as the device has room for, each of which takes every such tile.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: control
#: args --baseline none
#! surface tilelang
#! param BLOCKS = 528 {264, 528}
#! launch saxpy args(a, x, y, out)
import tilelang.language as T

N = T.dynamic("N")


def saxpy(BLOCKS, BLOCK=256):
    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N,), "float32"), y: T.Tensor((N,), "float32"),
             out: T.Tensor((N,), "float32")):
        with T.Kernel(BLOCKS, threads=BLOCK) as block:
            for n in T.serial(T.ceildiv(T.ceildiv(N, BLOCK) - block, BLOCKS)):
                for i in T.Parallel(BLOCK):
                    if (n * BLOCKS + block) * BLOCK + i < N:
                        out[(n * BLOCKS + block) * BLOCK + i] = (
                            a * x[(n * BLOCKS + block) * BLOCK + i] + y[(n * BLOCKS + block) * BLOCK + i])

    return main
