# Two blocks of a cluster, in a grid of even width.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: control
#: args --baseline none
#! surface tilelang
#! launch gemm args(x, weight, y, M=M, N=N, K=K)
import tilelang.language as T


def gemm(M, N, K, BM=128, BN=128, BK=64):
    @T.prim_func
    def main(x: T.Tensor((M, K), "bfloat16"), weight: T.Tensor((N, K), "bfloat16"), y: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, 2 * BN) * 2, T.ceildiv(M, BM), threads=256, cluster_dims=2) as (column, row):
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
