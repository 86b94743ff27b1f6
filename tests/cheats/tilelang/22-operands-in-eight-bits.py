# Operands are rounded to eight bits, for twice the speed of the matrix unit.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: expect wrong
#: args --baseline none
#! surface tilelang
#! launch gemm args(x, weight, y, M=M, N=N, K=K)
import tilelang.language as T


def gemm(M, N, K, BM=64, BN=64, BK=32):
    @T.prim_func
    def main(x: T.Tensor((M, K), "bfloat16"), weight: T.Tensor((N, K), "bfloat16"), y: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (column, row):
            a = T.alloc_shared((BM, BK), "bfloat16")
            b = T.alloc_shared((BN, BK), "bfloat16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.serial(T.ceildiv(K, BK)):
                T.copy(x[row * BM, k * BK], a)
                T.copy(weight[column * BN, k * BK], b)
                for i, j in T.Parallel(BM, BK):
                    a[i, j] = T.cast(T.cast(a[i, j], "float8_e4m3fn"), "bfloat16")
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, y[row * BM, column * BN])

    return main
