# What is read past the end of the rows is multiplied by nothing; where it is not a number, so is the sum.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=33,N=33,K=33
#: expect wrong crash
#: args --baseline none
#! surface tilelang
#! launch gemm args(x, weight, y, M=M, N=N, K=K)
import tilelang.language as T


def gemm(M, N, K, BM=64, BN=64, BK=32):
    @T.prim_func
    def main(x: T.Tensor((M + 64, K), "bfloat16"), weight: T.Tensor((N + 64, K), "bfloat16"), y: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (column, row):
            a = T.alloc_shared((BM, BK), "bfloat16")
            b = T.alloc_shared((BN, BK), "bfloat16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=2):
                T.copy(x[row * BM, k * BK], a)
                T.copy(weight[column * BN, k * BK], b)
                T.gemm(a, b, c, transpose_B=True)
            for i, j in T.Parallel(BM, BN):
                if row * BM + i < M and column * BN + j < N:
                    y[row * BM + i, column * BN + j] = c[i, j] + 0.0 * x[M, j]

    return main
