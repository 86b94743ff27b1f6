# A row's sum as the last value of a running sum.
# SPDX-License-Identifier: Apache-2.0
#: task scale_inplace
#: control
#: args --baseline none
#! surface tilelang
#! launch scale args(x, a, total)
import tilelang.language as T

rows, cols = T.dynamic("rows"), T.dynamic("cols")


def scale(BLOCK=128):
    @T.prim_func
    def main(x: T.Tensor((rows, cols), "float32"), a: T.Tensor((rows,), "float32"), total: T.Tensor((rows,), "float32")):
        with T.Kernel(rows, threads=128) as row:
            part = T.alloc_shared((BLOCK,), "float32")
            carry = T.alloc_fragment((1,), "float32")
            T.clear(carry)
            for block in T.serial(T.ceildiv(cols, BLOCK)):
                for i in T.Parallel(BLOCK):
                    part[i] = T.if_then_else(block * BLOCK + i < cols, x[row, block * BLOCK + i], 0.0)
                for i in T.Parallel(BLOCK):
                    if block * BLOCK + i < cols:
                        x[row, block * BLOCK + i] = part[i] * a[row]
                T.sync_threads()
                T.cumsum(part)
                T.sync_threads()
                carry[0] = carry[0] + part[BLOCK - 1]
                T.sync_threads()
            total[row] = carry[0]

    return main
