# Top-K, rung 5: thresholds where the K-th value should be.
# Adds other:interpolated_thresholds: how many values lie in an interval says about where in it the K-th one is.  The first
# round divides the interval evenly, the next ones try thresholds close to that place; after GUESSES rounds every interval is
# divided evenly again, in the order of the keys, so that no row takes long.
# Needs S of at most 16384.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! param WARPS = 8 {4, 8, 16}
#! param WAYS = 8 {4, 8, 16}
#! param GUESSES = 6 {1, 4, 6, 8}
#! let WIDTH = pow2(S)
#! require S <= 16384
#! launch topk grid(B) warps(WARPS) stages(1) args(x, values, indices, S, K, WIDTH=WIDTH)
import triton
import triton.language as tl


@triton.jit
def ordered(row):
    bits = row.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def store(values, indices, row, i, above, equal, K):
    """All that is above, then of what is equal as much as is missing."""
    missing = K - tl.sum(above.to(tl.int32), 0)
    before = tl.cumsum(above.to(tl.int32) + (equal.to(tl.int32) << 16), 0)  # two sums in one: S is below 2^15
    taken = above | (equal & ((before >> 16) <= missing))
    place = tl.where(above, before & 0xFFFF, K - missing + (before >> 16)) - 1
    first = tl.program_id(0).to(tl.int64) * K
    tl.store(values + first + place, row, mask=taken)
    tl.store(indices + first + place, i.to(tl.int64), mask=taken)


@triton.jit
def number(key):
    return (key ^ ((key >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@triton.jit
def thresholds(low, high, at_low, above, round, K, WAYS: tl.constexpr, GUESSES: tl.constexpr):
    j = tl.arange(0, WAYS) + 1
    step = (high - low + WAYS) // (WAYS + 1)
    even = low + step * j
    place = (at_low - K).to(tl.float32) / (at_low - above) + (j - 0.5 - WAYS / 2) * (0.25 / WAYS)
    place = tl.where(round == 0, j.to(tl.float32) / (WAYS + 1), place)
    first, last = number(low.to(tl.int32)), number(high.to(tl.int32))
    guess = ordered(first + (last - first) * place).to(tl.int64)  # of infinite ends anything, within the interval all the same
    return tl.minimum(tl.maximum(tl.where(round < GUESSES, guess, even), low + 1), high).to(tl.int32)


@triton.jit
def topk(x, values, indices, S, K, WIDTH: tl.constexpr, WAYS: tl.constexpr, GUESSES: tl.constexpr):
    i = tl.arange(0, WIDTH)
    row = tl.load(x + tl.program_id(0).to(tl.int64) * S + i, mask=i < S, other=0.0)
    key = tl.where(i < S, ordered(row), -0x80000000)
    low = tl.min(tl.where(i < S, key, 0x7FFFFFFF), 0).to(tl.int64)  # all are at least this
    high = tl.max(key, 0).to(tl.int64) + 1  # K or fewer are at least this
    at_low, above, round = S, 0, 0  # so many are at least the one and the other
    while (high - low > 1) & (above != K):
        tried = thresholds(low, high, at_low, above, round, K, WAYS, GUESSES)
        count = tl.sum((key[:, None] >= tried[None, :]).to(tl.int32), 0)
        low = tl.maximum(tl.max(tl.where(count > K, tried, -0x80000000), 0).to(tl.int64), low)
        high = tl.minimum(tl.min(tl.where(count > K, 0x7FFFFFFF, tried), 0).to(tl.int64), high)
        at_low = tl.minimum(tl.min(tl.where(count > K, count, S), 0), at_low)
        above = tl.maximum(tl.max(tl.where(count > K, 0, count), 0), above)
        round += 1
    store(values, indices, row, i, key >= high, (key == low) & (above < K), K)
