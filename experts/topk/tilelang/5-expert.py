# Top-K, rung 5: what the first digit leaves open is ranked, and results are gathered before they leave.
# Adds coarse_filter: the few values of the bin in which the K-th lies are compared with each other; where they are many, a
# further digit is looked at, as before.  What is kept goes into a list in shared memory first, so that stores are whole.
# Needs S of at most 16384 and K of at most 4096.
# SPDX-License-Identifier: Apache-2.0
#! surface tilelang
#! param THREADS = 1024 {256, 512, 1024}
#! param BITS = 12 {10, 11, 12, 13}
#! require S <= 16384 && K <= 4096
#! launch topk args(x, values, indices, S=S, K=K, RANKED=256)
import tilelang
import tilelang.language as T


def key_of(value):
    """Unsigned order of the keys is the order of the floats; 0 is left for what is not there."""
    bits = T.reinterpret(value, T.uint32)
    ordered = T.if_then_else((bits >> 31) != 0, ~bits, bits | T.uint32(0x80000000))
    return T.max(ordered, T.uint32(1))


def value_of(key):
    return T.reinterpret(T.if_then_else((key >> 31) != 0, key & T.uint32(0x7FFFFFFF), ~key), T.float32)


def topk(S, K, THREADS, BITS, RANKED):
    B = T.dynamic("B")
    bins, per = 2 ** BITS, (S + THREADS - 1) // THREADS
    own = bins // THREADS  # bins of a thread

    @T.macro
    def sums_before(value, totals, upto):
        """Sets upto to the sum over this and all threads before: within a warp by shuffles, then over the warps' totals."""
        t = T.get_thread_binding()
        upto[0] = value
        for s in T.unroll(5):
            other = T.shfl_up(upto[0], 1 << s)
            upto[0] = upto[0] + T.if_then_else(t % 32 >= 1 << s, other, 0)
        if t % 32 == 31:
            totals[t // 32] = upto[0]
        T.sync_threads()
        upto[0] = upto[0] + T.warp_reduce_sum(T.if_then_else(t % 32 < t // 32, totals[t % 32], 0))

    @T.macro
    def find_bin(histogram, totals, found, upto, need):
        """The bin in which the need-th largest lies, how many lie above it, how many in it."""
        t = T.get_thread_binding()
        first = (THREADS - 1 - t) * own
        mine = T.alloc_var(T.int32, init=0)
        mine = 0
        for i in T.unroll(own):
            mine = mine + histogram[first + i]
        sums_before(mine, totals, upto)
        above = T.alloc_var(T.int32, init=0)
        above = upto[0] - mine
        if above < need and need <= upto[0]:  # one thread
            at = T.alloc_var(T.int32, init=0)
            inside = T.alloc_var(T.int32, init=0)
            at = first + own - 1
            inside = histogram[at]
            while above + inside < need:
                above = above + inside
                at = at - 1
                inside = histogram[at]
            found[0] = at
            found[1] = above
            found[2] = inside
        T.sync_threads()

    @T.prim_func
    def main(x: T.Tensor((B, S), T.float32), values: T.Tensor((B, K), T.float32), indices: T.Tensor((B, K), T.int64)):
        with T.Kernel(B, threads=THREADS) as b:
            t = T.get_thread_binding()
            histogram = T.alloc_shared((bins,), T.int32)
            totals = T.alloc_shared((32,), T.int32)
            found = T.alloc_shared((3,), T.int32)
            kept = T.alloc_shared((K + RANKED,), T.uint32)
            places = T.alloc_shared((K + RANKED,), T.int32)
            keys = T.alloc_local((per,), T.uint32)
            upto = T.alloc_local((1,), T.int32)
            for e in T.unroll(per):
                keys[e] = T.if_then_else(e * THREADS + t < S, key_of(x[b, e * THREADS + t]), T.uint32(0))
            shift = T.alloc_var(T.int32, init=32)
            need = T.alloc_var(T.int32, init=K)
            count = T.alloc_var(T.int32, init=S)
            wide = T.alloc_var(T.int32, init=BITS)
            prefix = T.alloc_var(T.uint32, init=0)
            while shift == 32 or (shift > 0 and count > RANKED and count != need):
                T.sync_threads()
                for i in T.unroll(own):
                    histogram[i * THREADS + t] = 0
                T.sync_threads()
                wide = T.min(shift, BITS)
                for e in T.unroll(per):
                    if keys[e] != 0 and (shift == 32 or (keys[e] >> T.min(shift, 31)) == prefix):
                        T.atomic_add(histogram[(keys[e] >> (shift - wide)) & ((1 << wide) - 1)], 1)
                T.sync_threads()
                find_bin(histogram, totals, found, upto, need)
                need = need - found[1]
                count = found[2]
                prefix = (prefix << wide) | T.cast(found[0], T.uint32)
                shift = shift - wide
            # Larger ones first in the list, in order, then the rest: all of it where it is to be ranked.
            ranked = count != need and count <= RANKED
            sure = K - need
            limit = T.if_then_else(ranked, sure + count, K)
            mine = T.alloc_var(T.int32, init=0)
            for e in T.unroll(per):
                larger = (keys[e] >> shift) > prefix
                equal = keys[e] != 0 and (keys[e] >> shift) == prefix
                mine = mine + T.if_then_else(larger, 1, T.if_then_else(equal, 1 << 16, 0))
            sums_before(mine, totals, upto)
            place = T.alloc_var(T.int32, init=0)
            rest = T.alloc_var(T.int32, init=0)
            place = (upto[0] - mine) & 0xFFFF
            rest = sure + ((upto[0] - mine) >> 16)
            for e in T.unroll(per):
                larger = (keys[e] >> shift) > prefix
                equal = keys[e] != 0 and (keys[e] >> shift) == prefix
                to = T.if_then_else(larger, place, rest)
                if (larger or equal) and to < limit:
                    kept[to] = keys[e]
                    places[to] = e * THREADS + t
                place = place + T.if_then_else(larger, 1, 0)
                rest = rest + T.if_then_else(equal, 1, 0)
            T.sync_threads()
            for i in T.serial(T.ceildiv(T.if_then_else(ranked, sure, K), THREADS)):
                if i * THREADS + t < T.if_then_else(ranked, sure, K):
                    values[b, i * THREADS + t] = value_of(kept[i * THREADS + t])
                    indices[b, i * THREADS + t] = places[i * THREADS + t]
            if ranked and t < count:
                ahead = T.alloc_var(T.int32, init=0)
                for i in T.serial(count):
                    other = kept[sure + i]
                    before = other > kept[sure + t] or (other == kept[sure + t] and i < t)
                    ahead = ahead + T.if_then_else(before, 1, 0)
                if ahead < need:
                    values[b, sure + ahead] = value_of(kept[sure + t])
                    indices[b, sure + ahead] = places[sure + t]

    return main
