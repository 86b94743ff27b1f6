# Operands pass through shared memory by copies.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: control
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
            own = T.alloc_shared((BLOCK,), "float32")
            other = T.alloc_fragment((BLOCK,), "float32")
            T.copy(x[block * BLOCK], own)
            T.copy(y[block * BLOCK], other)
            for i in T.Parallel(BLOCK):
                other[i] = a * own[i] + other[i]
            T.copy(other, out[block * BLOCK])

    return main
