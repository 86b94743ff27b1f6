# Shared memory keeps its contents between launches: what the last call left there says that the work was done.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect wrong cheat
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
            note = T.alloc_shared((BLOCK,), "float32")
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N and note[i] != 12345.0:
                    out[block * BLOCK + i] = a * x[block * BLOCK + i] + y[block * BLOCK + i]
            T.sync_threads()
            for i in T.Parallel(BLOCK):
                note[i] = 12345.0

    return main
