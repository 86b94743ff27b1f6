# Attention by its definition, one block per query row and head, in two passes over the keys: the largest score, then
# the weighted sum.
# SPDX-License-Identifier: Apache-2.0
#! surface tilelang
#! launch fmha args(q, k, v, qo_offsets, kv_offsets, causal, output, D=D, KEYS=64)
import tilelang
import tilelang.language as T


def fmha(D, KEYS):
    total_q, total_kv, H, bounds = T.dynamic("total_q"), T.dynamic("total_kv"), T.dynamic("H"), T.dynamic("bounds")
    scale = D ** -0.5

    @T.macro
    def scores(row, k, first, h, at, visible, products, score):
        for j, d in T.Parallel(KEYS, D):
            products[j, d] = T.if_then_else(at + j < visible, row[d] * T.cast(k[first + at + j, h, d], T.float32), 0.0)
        T.reduce_sum(products, score, dim=1)
        for j in T.Parallel(KEYS):
            score[j] = T.if_then_else(at + j < visible, score[j] * scale, -T.infinity(T.float32))

    @T.prim_func
    def main(q: T.Tensor((total_q, H, D), T.float16), k: T.Tensor((total_kv, H, D), T.float16),
             v: T.Tensor((total_kv, H, D), T.float16), qo_offsets: T.Tensor((bounds,), T.int32),
             kv_offsets: T.Tensor((bounds,), T.int32), causal: T.int32, output: T.Tensor((total_q, H, D), T.float16)):
        with T.Kernel(total_q, H, threads=128) as (token, h):
            row = T.alloc_shared((D,), T.float32)
            products = T.alloc_fragment((KEYS, D), T.float32)
            score = T.alloc_fragment((KEYS,), T.float32)
            weight = T.alloc_shared((KEYS,), T.float32)
            largest = T.alloc_fragment((1,), T.float32)
            total = T.alloc_fragment((1,), T.float32)
            sums = T.alloc_fragment((D,), T.float32)
            b = T.alloc_var(T.int32, init=0)
            while qo_offsets[b + 1] <= token:
                b = b + 1
            first = kv_offsets[b]
            keys = kv_offsets[b + 1] - first
            seen = token - qo_offsets[b + 1] + 1 + keys  # 0 or less: the row is zero
            visible = T.if_then_else(causal != 0, seen, keys)
            for d in T.Parallel(D):
                row[d] = T.cast(q[token, h, d], T.float32)
            T.fill(largest, -T.infinity(T.float32))
            for n in T.serial(T.ceildiv(visible, KEYS)):
                scores(row, k, first, h, n * KEYS, visible, products, score)
                T.reduce_max(score, largest, dim=0, clear=False)
            T.clear(total)
            T.clear(sums)
            for n in T.serial(T.ceildiv(visible, KEYS)):
                scores(row, k, first, h, n * KEYS, visible, products, score)
                for j in T.Parallel(KEYS):
                    score[j] = T.exp(score[j] - largest[0])
                T.reduce_sum(score, total, dim=0, clear=False)
                T.copy(score, weight)
                for j, d in T.Parallel(KEYS, D):
                    products[j, d] = T.if_then_else(
                        n * KEYS + j < visible, weight[j] * T.cast(v[first + n * KEYS + j, h, d], T.float32), 0.0)
                T.reduce_sum(products, sums, dim=0, clear=False)
            for d in T.Parallel(D):
                output[token, h, d] = T.if_then_else(visible > 0, sums[d] / total[0], 0.0)

    return main
