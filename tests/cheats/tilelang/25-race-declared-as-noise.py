# Blocks add without atomics, and a directive says that runs may differ. The directive allows other last bits and no
# other sums.
# SPDX-License-Identifier: Apache-2.0
#: task scale_inplace
#: expect wrong
#: args --baseline none
#! surface tilelang
#! nondeterministic
#! launch scale args(x, a, total)
import tilelang.language as T

rows, cols = T.dynamic("rows"), T.dynamic("cols")


def scale(BLOCK=128):
    @T.prim_func
    def main(x: T.Tensor((rows, cols), "float32"), a: T.Tensor((rows,), "float32"), total: T.Tensor((rows,), "float32")):
        with T.Kernel(T.ceildiv(cols, BLOCK), rows, threads=BLOCK) as (block, row):
            part = T.alloc_fragment((BLOCK,), "float32")
            some = T.alloc_fragment((1,), "float32")
            for i in T.Parallel(BLOCK):
                part[i] = T.if_then_else(block * BLOCK + i < cols, x[row, block * BLOCK + i], 0.0)
            T.reduce_sum(part, some)
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < cols:
                    x[row, block * BLOCK + i] = part[i] * a[row]
            total[row] = total[row] + some[0]

    return main
