# Attention, rung 6: the scores of a block are on their way while the values of the one before are summed.
# Adds intra_wg_overlap: both products are started, then the scores weighed while the sums go on; the compiler's division into
# loader and multipliers waits for each product, so it is written out here.  Blocks run from the last, which alone need masks.
# Needs D a multiple of 16, 128 and less; compute capability 9.0.
# SPDX-License-Identifier: Apache-2.0
#! surface tilelang
#! param KEYS = 128 {64, 128}
#! param STAGES = 2 {2, 3}
#! flags -tl.enable_fast_math -tl.disable_warp_specialized
#! require D % 16 == 0 && D <= 128
#! launch fmha args(q, k, v, qo_offsets, kv_offsets, causal, output, D=D)
import tilelang
import tilelang.language as T

ROWS = 128


def fmha(D, KEYS, STAGES):
    total_q, total_kv, H, bounds = T.dynamic("total_q"), T.dynamic("total_kv"), T.dynamic("H"), T.dynamic("bounds")
    scale = 1.4426950408889634 * D ** -0.5  # powers of two are cheaper than of e

    @T.macro
    def weigh(score, largest, before, shrink, added, total):
        """Scores to weights, and the running maximum and sum with them; results so far shrink to the new maximum."""
        T.copy(largest, before)
        T.reduce_max(score, largest, dim=1, clear=False)
        for i in T.Parallel(ROWS):
            shrink[i] = T.exp2(before[i] * scale - largest[i] * scale)
        for i, j in T.Parallel(ROWS, KEYS):
            score[i, j] = T.exp2(score[i, j] * scale - largest[i] * scale)
        T.reduce_sum(score, added, dim=1)
        for i in T.Parallel(ROWS):
            total[i] = total[i] * shrink[i] + added[i]

    @T.prim_func
    def main(q: T.Tensor((total_q, H, D), T.float16), k: T.Tensor((total_kv, H, D), T.float16),
             v: T.Tensor((total_kv, H, D), T.float16), qo_offsets: T.Tensor((bounds,), T.int32),
             kv_offsets: T.Tensor((bounds,), T.int32), causal: T.int32, output: T.Tensor((total_q, H, D), T.float16)):
        with T.Kernel(T.ceildiv(total_q, ROWS) + bounds - 1, H, threads=384) as (tile, h):
            queries = T.alloc_shared((ROWS, D), T.float16)
            keys = T.alloc_shared((STAGES, KEYS, D), T.float16)
            values = T.alloc_shared((STAGES, KEYS, D), T.float16)
            score = T.alloc_fragment((ROWS, KEYS), T.float32)
            weight = T.alloc_fragment((ROWS, KEYS), T.float16)
            sums = T.alloc_fragment((ROWS, D), T.float32)
            largest = T.alloc_fragment((ROWS,), T.float32)
            before = T.alloc_fragment((ROWS,), T.float32)
            shrink = T.alloc_fragment((ROWS,), T.float32)
            added = T.alloc_fragment((ROWS,), T.float32)
            total = T.alloc_fragment((ROWS,), T.float32)
            queries_full = T.alloc_barrier(128)
            keys_full, keys_empty = T.alloc_barrier([128] * STAGES), T.alloc_barrier([256] * STAGES)
            values_full, values_empty = T.alloc_barrier([128] * STAGES), T.alloc_barrier([256] * STAGES)
            # The tile's sequence, and its first row there; one beyond the last sequence's rows is nobody's.
            b = T.alloc_var(T.int32, init=0)
            row = T.alloc_var(T.int32, init=0)
            row = tile * ROWS
            while b < bounds - 2 and row >= T.ceildiv(qo_offsets[b + 1] - qo_offsets[b], ROWS) * ROWS:
                row = row - T.ceildiv(qo_offsets[b + 1] - qo_offsets[b], ROWS) * ROWS
                b = b + 1
            first = qo_offsets[b]
            n_rows = qo_offsets[b + 1] - first
            start = kv_offsets[b]
            n_keys = kv_offsets[b + 1] - start
            seen = T.if_then_else(causal != 0, n_keys - n_rows + 1, n_keys)  # row i sees so many keys, and i more where causal
            last = T.if_then_else(row < n_rows, seen + causal * (T.min(row + ROWS, n_rows) - 1), 0)
            blocks = T.ceildiv(T.max(last, 0), KEYS)
            whole = T.min(T.max(seen + causal * row, 0) // KEYS, blocks)  # so many need no mask
            if T.get_thread_binding() < 256:
                T.inc_max_nreg(240)
                T.clear(sums)
                T.clear(total)
                # A row may see nothing of the blocks that come first.  From a finite maximum its weights are then 0 and it shrinks by
                # 1; of a power of two the product with the scale is exact, so that maximum less itself is 0 in one instruction too.
                T.fill(largest, -2.0**100)
                if blocks > 0:
                    T.barrier_wait(queries_full, 0)
                    T.barrier_wait(keys_full[0], 0)
                    T.wgmma_gemm(queries, keys[0, :, :], score, transpose_B=True, policy=T.GemmWarpPolicy.FullRow, clear_accum=True)
                    T.wait_wgmma(0)
                    T.barrier_arrive(keys_empty[0])
                    for i, j in T.Parallel(ROWS, KEYS):
                        score[i, j] = T.if_then_else((blocks - 1) * KEYS + j < seen + causal * (row + i), score[i, j], -T.infinity(T.float32))
                    weigh(score, largest, before, shrink, added, total)
                    T.copy(score, weight)
                    for n in T.serial(1, blocks):
                        T.barrier_wait(keys_full[n % STAGES], n // STAGES % 2)
                        T.wgmma_gemm(queries, keys[n % STAGES, :, :], score, transpose_B=True, policy=T.GemmWarpPolicy.FullRow, clear_accum=True)
                        T.barrier_wait(values_full[(n - 1) % STAGES], (n - 1) // STAGES % 2)
                        T.wgmma_gemm(weight, values[(n - 1) % STAGES, :, :], sums, policy=T.GemmWarpPolicy.FullRow)
                        T.wait_wgmma(1)
                        T.barrier_arrive(keys_empty[n % STAGES])
                        if blocks - 1 - n >= whole:
                            for i, j in T.Parallel(ROWS, KEYS):
                                score[i, j] = T.if_then_else((blocks - 1 - n) * KEYS + j < seen + causal * (row + i), score[i, j], -T.infinity(T.float32))
                        weigh(score, largest, before, shrink, added, total)
                        T.wait_wgmma(0)
                        T.barrier_arrive(values_empty[(n - 1) % STAGES])
                        for i, d in T.Parallel(ROWS, D):
                            sums[i, d] *= shrink[i]
                        T.copy(score, weight)
                    T.barrier_wait(values_full[(blocks - 1) % STAGES], (blocks - 1) // STAGES % 2)
                    T.wgmma_gemm(weight, values[(blocks - 1) % STAGES, :, :], sums, policy=T.GemmWarpPolicy.FullRow)
                    T.wait_wgmma(0)
                for i, d in T.Parallel(ROWS, D):
                    if row + i < n_rows:
                        output[first + row + i, h, d] = T.if_then_else(seen + causal * (row + i) > 0, sums[i, d] / total[i], 0.0)
            else:
                T.dec_max_nreg(24)
                if blocks > 0:
                    T.tma_copy(q[first + row:first + row + ROWS, h, :], queries, barrier=queries_full)
                    T.barrier_arrive(queries_full)
                for n in T.serial(blocks):
                    at = start + (blocks - 1 - n) * KEYS
                    T.barrier_wait(keys_empty[n % STAGES], (n // STAGES + 1) % 2)
                    T.tma_copy(k[at:at + KEYS, h, :], keys[n % STAGES, :, :], barrier=keys_full[n % STAGES])
                    T.barrier_arrive(keys_full[n % STAGES])
                    T.barrier_wait(values_empty[n % STAGES], (n // STAGES + 1) % 2)
                    T.tma_copy(v[at:at + KEYS, h, :], values[n % STAGES, :, :], barrier=values_full[n % STAGES])
                    T.barrier_arrive(values_full[n % STAGES])

    return main
