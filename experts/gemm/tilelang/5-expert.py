# Matrix product, rung 5: tiles of 128 x 256, which leave by the copy engine too.
# Adds tile_larger, stmatrix_epilogue and tma_store_async: twice the products for half as much more loads, and the result
# goes through shared memory in whole lines.  Neighbouring blocks take neighbouring rows, in groups of eight.
# Needs K and N multiples of 8; compute capability 9.0.
# SPDX-License-Identifier: Apache-2.0
#! surface tilelang
#! param BM = 128 {64, 128}
#! param BN = 256 {64, 128, 256}
#! param BK = 64 {32, 64}
#! param STAGES = 3 {2, 3, 4}
#! require K % 8 == 0 && N % 8 == 0
#! launch gemm args(x, weight, y, N=N, K=K)
import tilelang
import tilelang.language as T


def gemm(N, K, BM, BN, BK, STAGES):
    M = T.dynamic("M")

    @T.prim_func
    def main(x: T.Tensor((M, K), T.bfloat16), weight: T.Tensor((N, K), T.bfloat16), y: T.Tensor((M, N), T.bfloat16)):
        with T.Kernel(T.ceildiv(M, BM), T.ceildiv(N, BN), threads=256) as (row, column):
            a = T.alloc_shared((BM, BK), T.bfloat16)
            b = T.alloc_shared((BN, BK), T.bfloat16)
            c = T.alloc_shared((BM, BN), T.bfloat16)
            total = T.alloc_fragment((BM, BN), T.float32)
            T.use_swizzle(8)
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=STAGES):
                T.copy(x[row * BM, k * BK], a)
                T.copy(weight[column * BN, k * BK], b)
                T.gemm(a, b, total, transpose_B=True)
            T.copy(total, c)
            T.copy(c, y[row * BM, column * BN])

    return main
