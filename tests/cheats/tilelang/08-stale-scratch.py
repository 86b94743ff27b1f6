# A mark in scratch that is left from the last call says that the work was done.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: workload N=16777216
#: expect wrong cheat
#: args --baseline none
#! surface tilelang
#! buffer mark: i32[1]
#! launch saxpy args(a, x, y, out, mark)
import tilelang.language as T

N = T.dynamic("N")


def saxpy(BLOCK=256):
    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N,), "float32"), y: T.Tensor((N,), "float32"),
             out: T.Tensor((N,), "float32"), mark: T.Tensor((1,), "int32")):
        with T.Kernel(T.ceildiv(N, BLOCK), threads=BLOCK) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N and mark[0] != 0x5EED:
                    out[block * BLOCK + i] = a * x[block * BLOCK + i] + y[block * BLOCK + i]
            T.sync_threads()
            mark[0] = 0x5EED

    return main
