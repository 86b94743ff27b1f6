# Gated delta rule by its recurrence, one block per 16 columns of the state, which stays in registers.
# SPDX-License-Identifier: Apache-2.0
#! surface tilelang
#! launch gdn args(q, k, v, g, beta, initial_state, output, final_state, D=D, COLUMNS=16)
import tilelang
import tilelang.language as T


def gdn(D, COLUMNS):
    B, tokens, HQ, HV = T.dynamic("B"), T.dynamic("T"), T.dynamic("HQ"), T.dynamic("HV")
    scale = D ** -0.5

    @T.prim_func
    def main(q: T.Tensor((B, tokens, HQ, D), T.bfloat16), k: T.Tensor((B, tokens, HQ, D), T.bfloat16),
             v: T.Tensor((B, tokens, HV, D), T.bfloat16), g: T.Tensor((B, tokens, HV), T.float32),
             beta: T.Tensor((B, tokens, HV), T.float32), initial_state: T.Tensor((B, HV, D, D), T.float32),
             output: T.Tensor((B, tokens, HV, D), T.bfloat16), final_state: T.Tensor((B, HV, D, D), T.float32)):
        with T.Kernel(T.ceildiv(D, COLUMNS), B * HV, threads=128) as (block, pair):
            state = T.alloc_fragment((D, COLUMNS), T.float32)
            products = T.alloc_fragment((D, COLUMNS), T.float32)
            sums = T.alloc_fragment((COLUMNS,), T.float32)
            delta = T.alloc_fragment((COLUMNS,), T.float32)
            key = T.alloc_shared((D,), T.float32)
            query = T.alloc_shared((D,), T.float32)
            b, h = pair // HV, pair % HV
            shared = h // (HV // HQ)
            first = block * COLUMNS
            for i, j in T.Parallel(D, COLUMNS):
                state[i, j] = initial_state[b, h, i, first + j]
            for t in T.serial(tokens):
                for i in T.Parallel(D):
                    key[i] = T.cast(k[b, t, shared, i], T.float32)
                    query[i] = T.cast(q[b, t, shared, i], T.float32)
                decay = T.exp(g[b, t, h])
                for i, j in T.Parallel(D, COLUMNS):
                    state[i, j] = state[i, j] * decay
                    products[i, j] = state[i, j] * key[i]
                T.reduce_sum(products, sums, dim=0)
                for j in T.Parallel(COLUMNS):
                    delta[j] = beta[b, t, h] * (T.cast(v[b, t, h, first + j], T.float32) - sums[j])
                for i, j in T.Parallel(D, COLUMNS):
                    state[i, j] += key[i] * delta[j]
                    products[i, j] = state[i, j] * query[i]
                T.reduce_sum(products, sums, dim=0)
                for j in T.Parallel(COLUMNS):
                    output[b, t, h, first + j] = sums[j] * scale
            for i, j in T.Parallel(D, COLUMNS):
                final_state[b, h, i, first + j] = state[i, j]

    return main
