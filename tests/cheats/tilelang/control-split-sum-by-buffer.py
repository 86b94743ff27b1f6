# Four slices of the sum in scratch of their own, added in one order by a second kernel.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: control
#: args --baseline none
#! surface tilelang
#! buffer parts: f32[4, M, N]
#! launch slices args(x, weight, parts)
#! launch added args(parts, y)
import tilelang.language as T

M, N, K = T.dynamic("M"), T.dynamic("N"), T.dynamic("K")


def slices(BLOCK=64, DEPTH=32, PARTS=4):
    @T.prim_func
    def main(x: T.Tensor((M, K), "bfloat16"), weight: T.Tensor((N, K), "bfloat16"), parts: T.Tensor((PARTS, M, N), "float32")):
        with T.Kernel(T.ceildiv(M, BLOCK), T.ceildiv(N, BLOCK), PARTS, threads=128) as (row, column, part):
            a = T.alloc_shared((BLOCK, DEPTH), "bfloat16")
            b = T.alloc_shared((BLOCK, DEPTH), "bfloat16")
            c = T.alloc_fragment((BLOCK, BLOCK), "float32")
            T.clear(c)
            for k in T.serial(T.ceildiv(K, DEPTH * PARTS)):
                T.copy(x[row * BLOCK, (k * PARTS + part) * DEPTH], a)
                T.copy(weight[column * BLOCK, (k * PARTS + part) * DEPTH], b)
                T.gemm(a, b, c, transpose_B=True)
            for i, j in T.Parallel(BLOCK, BLOCK):
                if row * BLOCK + i < M and column * BLOCK + j < N:
                    parts[part, row * BLOCK + i, column * BLOCK + j] = c[i, j]

    return main


def added(PARTS=4):
    @T.prim_func
    def main(parts: T.Tensor((PARTS, M, N), "float32"), y: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(M, T.ceildiv(N, 128), threads=128) as (row, block):
            for j in T.Parallel(128):
                if block * 128 + j < N:
                    y[row, block * 128 + j] = parts[0, row, block * 128 + j] + parts[1, row, block * 128 + j] + (
                        parts[2, row, block * 128 + j] + parts[3, row, block * 128 + j])

    return main
