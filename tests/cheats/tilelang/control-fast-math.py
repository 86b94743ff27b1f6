# Approximate functions, by a configuration that is a flag; a row's powers are still within what the task allows.
# SPDX-License-Identifier: Apache-2.0
#: task softmax
#: workload rows=256,cols=1000
#: control
#: args --baseline none
#! surface tilelang
#! let BLOCK = max(pow2(cols), 128)
#! flags -tl.enable_fast_math
#! launch softmax args(x, output, N=cols, BLOCK=BLOCK)
import tilelang.language as T

rows = T.dynamic("rows")


def softmax(N, BLOCK):
    @T.prim_func
    def main(x: T.Tensor((rows, N), "bfloat16"), y: T.Tensor((rows, N), "bfloat16")):
        with T.Kernel(rows, threads=128) as row:
            power = T.alloc_fragment((BLOCK,), "float32")
            largest = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            for j in T.Parallel(BLOCK):
                power[j] = T.if_then_else(j < N, x[row, j], -T.infinity("float32"))
            T.reduce_max(power, largest)
            for j in T.Parallel(BLOCK):
                power[j] = T.exp(power[j] - largest[0])
            T.reduce_sum(power, total)
            for j in T.Parallel(BLOCK):
                if j < N:
                    y[row, j] = power[j] / total[0]

    return main
