# A sum by atomics into cleared scratch; the last bits differ from run to run, as declared.
# SPDX-License-Identifier: Apache-2.0
#: task scale_inplace
#: control
#: args --baseline none
#! surface tilelang
#! nondeterministic
#! buffer sums: f32[rows] zero
#! launch scale args(x, a, total, sums)
import tilelang.language as T

rows, cols = T.dynamic("rows"), T.dynamic("cols")


def scale(BLOCK=128):
    @T.prim_func
    def main(x: T.Tensor((rows, cols), "float32"), a: T.Tensor((rows,), "float32"), total: T.Tensor((rows,), "float32"), sums: T.Tensor((rows,), "float32")):
        with T.Kernel(T.ceildiv(cols, BLOCK), rows, threads=BLOCK) as (block, row):
            part = T.alloc_fragment((BLOCK,), "float32")
            some = T.alloc_fragment((1,), "float32")
            for i in T.Parallel(BLOCK):
                part[i] = T.if_then_else(block * BLOCK + i < cols, x[row, block * BLOCK + i], 0.0)
            T.reduce_sum(part, some)
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < cols:
                    x[row, block * BLOCK + i] = part[i] * a[row]
            if T.get_thread_binding() == 0:
                T.atomic_add(sums[row], some[0])
        with T.Kernel(T.ceildiv(rows, BLOCK), threads=BLOCK) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < rows:
                    total[block * BLOCK + i] = sums[block * BLOCK + i]

    return main
