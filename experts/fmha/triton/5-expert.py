# Attention, rung 5: the copy engine brings queries, keys and values.
# Adds tma_load: one thread asks for a tile by its descriptor, and no registers go to addresses.  A tile's last rows may be
# another sequence's: their scores are masked, and of the results only the sequence's own rows are stored.
# Needs a D that is a power of two; compute capability 9.0.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! param ROWS = 128 {64, 128}
#! param KEYS = 128 {32, 64, 128}
#! param WARPS = 8 {4, 8}
#! param STAGES = 2 {1, 2, 3, 4}
#! require D == pow2(D) && D >= 16
#! tensormap tq: q dims(H * D, total_q) box(D, ROWS)
#! tensormap tk: k dims(H * D, total_kv) box(D, KEYS)
#! tensormap tv: v dims(H * D, total_kv) box(D, KEYS)
#! launch fmha grid(cdiv(total_q, ROWS) + B, H) warps(WARPS) stages(STAGES) \
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
def fmha(tq, tk, tv, qo_offsets, kv_offsets, causal, output, B, H, D: tl.constexpr, ROWS: tl.constexpr,
         KEYS: tl.constexpr):
    SCALE: tl.constexpr = 1.4426950408889634 * D ** -0.5  # powers of two are cheaper than of e
    row, first, rows, key, keys = own_tile(qo_offsets, kv_offsets, B, ROWS)
    i, h = row + tl.arange(0, ROWS), tl.program_id(1)
    queries = tq.load([first + row, h * D])
    beyond = tl.where(causal != 0, keys - rows, keys)  # row i sees i + 1 keys more, or none more
    step = tl.where(causal != 0, 1, 0)
    visible = beyond + step * (i + 1)  # 0 or less: the row is zero
    last = beyond + step * tl.minimum(row + ROWS, rows)
    whole = tl.minimum(tl.maximum(beyond + step * (row + 1), 0), last) // KEYS * KEYS  # every row sees the blocks before it
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, D), tl.float32)
    for at in range(0, whole, KEYS):
        score = tl.dot(queries, tk.load([key + at, h * D]).T)
        weights, largest, total, shrink = weigh(score, largest, total, SCALE, False)
        sums = tl.dot(weights.to(tv.dtype), tv.load([key + at, h * D]), sums * shrink[:, None])
    for at in tl.range(whole, last, KEYS, num_stages=1):
        score = tl.dot(queries, tk.load([key + at, h * D]).T)
        score = tl.where(at + tl.arange(0, KEYS)[None, :] < visible[:, None], score, -float("inf"))
        weights, largest, total, shrink = weigh(score, largest, total, SCALE, True)
        sums = tl.dot(weights.to(tv.dtype), tv.load([key + at, h * D]), sums * shrink[:, None])
    result = tl.where(total[:, None] > 0, sums / total[:, None], 0.0)
    own = ((first + i).to(tl.int64) * H + h)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(output + own, result.to(output.dtype.element_ty), mask=(i < rows)[:, None])
