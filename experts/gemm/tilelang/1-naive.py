# Matrix product by its definition, one block per tile of the output, no swizzle and no pipeline.
# SPDX-License-Identifier: Apache-2.0
#! surface tilelang
#! launch gemm args(x, weight, y, BLOCK=64, DEPTH=32)
import tilelang
import tilelang.language as T


def gemm(BLOCK, DEPTH):
    M, N, K = T.dynamic("M"), T.dynamic("N"), T.dynamic("K")

    @T.prim_func
    def main(x: T.Tensor((M, K), T.bfloat16), weight: T.Tensor((N, K), T.bfloat16), y: T.Tensor((M, N), T.bfloat16)):
        with T.Kernel(T.ceildiv(M, BLOCK), T.ceildiv(N, BLOCK), threads=128) as (row, column):
            a = T.alloc_shared((BLOCK, DEPTH), T.bfloat16)
            b = T.alloc_shared((BLOCK, DEPTH), T.bfloat16)
            total = T.alloc_fragment((BLOCK, BLOCK), T.float32)
            T.clear(total)
            for k in T.serial(T.ceildiv(K, DEPTH)):
                T.copy(x[row * BLOCK, k * DEPTH], a)
                T.copy(weight[column * BLOCK, k * DEPTH], b)
                T.gemm(a, b, total, transpose_B=True)
            T.copy(total, y[row * BLOCK, column * BLOCK])

    return main
