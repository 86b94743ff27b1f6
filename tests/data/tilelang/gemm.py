#! surface tilelang
#! param BM = 128 {64, 128}
#! param BN = 128 {128, 256}
#! param BK = 64 {32, 64}
#! param THREADS = 256
#! param STAGES = 3
#! launch gemm args(x, weight, y, M=M, N=N, K=K)
import tilelang
import tilelang.language as T

def gemm(M, N, K, BM, BN, BK, THREADS, STAGES):
    @T.prim_func
    def main(A: T.Tensor((M, K), T.bfloat16), B: T.Tensor((N, K), T.bfloat16), C: T.Tensor((M, N), T.bfloat16)):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=THREADS) as (bx, by):
            As = T.alloc_shared((BM, BK), T.bfloat16)
            Bs = T.alloc_shared((BN, BK), T.bfloat16)
            Cl = T.alloc_fragment((BM, BN), T.float32)
            T.clear(Cl)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=STAGES):
                T.copy(A[by * BM, k * BK], As)
                T.copy(B[bx * BN, k * BK], Bs)
                T.gemm(As, Bs, Cl, transpose_B=True)
            T.copy(Cl, C[by * BM, bx * BN])
    return main
