# Top-K by rank: a value's place is the number of values of its row that are larger, or equal and further left.  One
# thread per value.
# SPDX-License-Identifier: Apache-2.0
#! surface tilelang
#! launch topk args(x, values, indices, OWN=128)
import tilelang
import tilelang.language as T


def topk(OWN):
    B, S, K = T.dynamic("B"), T.dynamic("S"), T.dynamic("K")

    @T.prim_func
    def main(x: T.Tensor((B, S), T.float32), values: T.Tensor((B, K), T.float32), indices: T.Tensor((B, K), T.int64)):
        with T.Kernel(T.ceildiv(S, OWN), B, threads=OWN) as (block, b):
            own = T.alloc_fragment((OWN,), T.float32)
            rank = T.alloc_fragment((OWN,), T.int32)
            for i in T.Parallel(OWN):
                own[i] = T.if_then_else(block * OWN + i < S, x[b, block * OWN + i], 0.0)
                rank[i] = 0
            for j in T.serial(S):
                for i in T.Parallel(OWN):
                    other = x[b, j]
                    ahead = other > own[i] or (other == own[i] and j < block * OWN + i)
                    rank[i] += T.if_then_else(ahead, 1, 0)
            for i in T.Parallel(OWN):
                if block * OWN + i < S and rank[i] < K:
                    values[b, rank[i]] = own[i]
                    indices[b, rank[i]] = block * OWN + i

    return main
