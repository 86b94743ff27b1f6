# Attention, rung 7: tiles that need no mask have a kernel of their own.
# Adds mask_peel to warp_specialize: a tile whose rows see the same whole blocks of keys is the first kernel's, every other
# one the second's; each finds nothing to do where the other works.
# Needs a D that is a power of two; compute capability 9.0.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! param ROWS = 128 {64, 128}
#! param KEYS = 128 {32, 64, 128}
#! param STAGES = 2 {1, 2, 3, 4}
#! require D == pow2(D) && D >= 16
#! tensormap tq: q dims(H * D, total_q) box(D, ROWS)
#! tensormap tk: k dims(H * D, total_kv) box(D, KEYS)
#! tensormap tv: v dims(H * D, total_kv) box(D, KEYS)
#! launch whole_tiles grid(cdiv(total_q, ROWS) + B, H) warps(4) stages(STAGES) \
#!        args(tq, tk, tv, qo_offsets, kv_offsets, causal, output, B, H, D=D)
#! launch other_tiles grid(cdiv(total_q, ROWS) + B, H) warps(4) stages(STAGES) \
#!        args(tq, tk, tv, qo_offsets, kv_offsets, causal, output, B, H, D=D)
import triton
import triton.language as tl


@triton.jit
def own_tile(qo_offsets, kv_offsets, B, ROWS: tl.constexpr):
    """A tile's first row in its sequence, then the sequence: first query, queries, first key, keys.  No queries: no tile."""
    tile = tl.program_id(0)
    row, first, rows, key, keys = 0, 0, 0, 0, 0
    for b in range(B):
        begin = tl.load(qo_offsets + b)
        own = tl.load(qo_offsets + b + 1) - begin
        begin_keys = tl.load(kv_offsets + b)
        own_keys = tl.load(kv_offsets + b + 1) - begin_keys
        tiles = (own + ROWS - 1) // ROWS
        mine = (tile >= 0) & (tile < tiles)
        row, first, rows = tl.where(mine, tile * ROWS, row), tl.where(mine, begin, first), tl.where(mine, own, rows)
        key, keys = tl.where(mine, begin_keys, key), tl.where(mine, own_keys, keys)
        tile -= tiles
    return row, first, rows, key, keys


@triton.jit
def weigh(score, largest, total, SCALE: tl.constexpr, MASKED: tl.constexpr):
    """Weights of scores, the running maximum and sum with them, and what the results so far shrink by."""
    grown = tl.maximum(largest, tl.max(score, 1) * SCALE)
    base = grown
    if MASKED:  # a row that saw no key yet
        base = tl.where(grown == -float("inf"), 0.0, grown)
    weights = tl.exp2(score * SCALE - base[:, None])
    shrink = tl.exp2(largest - base)
    return weights, grown, total * shrink + tl.sum(weights, 1), shrink


@triton.jit
def whole_tiles(tq, tk, tv, qo_offsets, kv_offsets, causal, output, B, H, D: tl.constexpr, ROWS: tl.constexpr,
                KEYS: tl.constexpr):
    SCALE: tl.constexpr = 1.4426950408889634 * D ** -0.5  # powers of two are cheaper than of e
    row, first, rows, key, keys = own_tile(qo_offsets, kv_offsets, B, ROWS)
    i, h = row + tl.arange(0, ROWS), tl.program_id(1)
    whole = tl.where(causal == 0, keys // KEYS * KEYS, 0)
    whole = tl.where(whole == keys, whole, 0)
    queries = tq.load([first + row, h * D])
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, D), tl.float32)
    for at in tl.range(0, whole, KEYS, warp_specialize=True):
        score = tl.dot(queries, tk.load([key + at, h * D]).T)
        weights, largest, total, shrink = weigh(score, largest, total, SCALE, False)
        sums = tl.dot(weights.to(tv.dtype), tv.load([key + at, h * D]), sums * shrink[:, None])
    result = sums / total[:, None]
    own = ((first + i).to(tl.int64) * H + h)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(output + own, result.to(output.dtype.element_ty), mask=(i < tl.where(whole > 0, rows, 0))[:, None])


@triton.jit
def other_tiles(tq, tk, tv, qo_offsets, kv_offsets, causal, output, B, H, D: tl.constexpr, ROWS: tl.constexpr,
                KEYS: tl.constexpr):
    SCALE: tl.constexpr = 1.4426950408889634 * D ** -0.5  # powers of two are cheaper than of e
    row, first, rows, key, keys = own_tile(qo_offsets, kv_offsets, B, ROWS)
    i, h = row + tl.arange(0, ROWS), tl.program_id(1)
    rows = tl.where((causal == 0) & (keys > 0) & (keys % KEYS == 0), 0, rows)
    keys = tl.where(rows > 0, keys, 0)
    queries = tq.load([first + row, h * D])
    beyond = tl.where(causal != 0, keys - rows, keys)  # row i sees i + 1 keys more, or none more
    step = tl.where(causal != 0, 1, 0)
    visible = beyond + step * (i + 1)  # 0 or less: the row is zero
    last = beyond + step * tl.minimum(row + ROWS, rows)
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, D), tl.float32)
    for at in tl.range(0, last, KEYS, warp_specialize=True):
        score = tl.dot(queries, tk.load([key + at, h * D]).T)
        score = tl.where(at + tl.arange(0, KEYS)[None, :] < visible[:, None], score, -float("inf"))
        weights, largest, total, shrink = weigh(score, largest, total, SCALE, True)
        sums = tl.dot(weights.to(tv.dtype), tv.load([key + at, h * D]), sums * shrink[:, None])
    result = tl.where(total[:, None] > 0, sums / total[:, None], 0.0)
    own = ((first + i).to(tl.int64) * H + h)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(output + own, result.to(output.dtype.element_ty), mask=(i < rows)[:, None])
