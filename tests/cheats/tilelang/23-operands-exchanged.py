# The operands' places are exchanged, which is right for as long as both are the same; the order of parameters in the
# compiled code says nothing about them.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: expect wrong
#: args --baseline none
#! surface tilelang
#! launch gemm args(weight, x, y, M=M, N=N, K=K)
import tilelang.language as T


def gemm(M, N, K, BM=64, BN=64, BK=32):
    @T.prim_func
    def main(x: T.Tensor((M, K), "bfloat16"), weight: T.Tensor((N, K), "bfloat16"), y: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (column, row):
            a = T.alloc_shared((BM, BK), "bfloat16")
            b = T.alloc_shared((BN, BK), "bfloat16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=2):
                T.copy(x[row * BM, k * BK], a)
                T.copy(weight[column * BN, k * BK], b)
                T.gemm(a, b, c, transpose_B=True)
            T.copy(c, y[row * BM, column * BN])

    return main
