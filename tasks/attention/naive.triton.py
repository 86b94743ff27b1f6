# Attention by its definition, one program per query row and head, in two passes over the keys: the largest score, then
# the weighted sum.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! let DIMS = pow2(D)
#! launch attention grid(S, HQ, B) warps(4) stages(1) \
#!        args(query, key, value, is_causal, output, HQ, HKV, S, D, DIMS=DIMS, KEYS=64)
import triton
import triton.language as tl


@triton.jit
def scores(row, key, head, D, j, visible, dims, scale):
    keys = tl.load(key + head + j[:, None].to(tl.int64) * D + dims[None, :],
                   mask=(j[:, None] < visible) & (dims[None, :] < D), other=0.0)
    products = tl.sum(keys.to(tl.float32) * row[None, :], 1)
    return tl.where(j < visible, products * scale, -float("inf"))


@triton.jit
def attention(query, key, value, is_causal, output, HQ, HKV, S, D, DIMS: tl.constexpr, KEYS: tl.constexpr):
    i, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    visible = S
    if is_causal != 0:
        visible = i + 1
    own = ((b * HQ + h) * S + i) * D
    head = (b * HKV + h // (HQ // HKV)) * S * D
    dims = tl.arange(0, DIMS)
    row = tl.load(query + own + dims, mask=dims < D, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(D.to(tl.float32))
    largest = -float("inf")
    for at in range(0, visible, KEYS):
        largest = tl.maximum(largest, tl.max(scores(row, key, head, D, at + tl.arange(0, KEYS), visible, dims, scale), 0))
    total = 0.0
    sums = tl.zeros((DIMS,), tl.float32)
    for at in range(0, visible, KEYS):
        j = at + tl.arange(0, KEYS)
        weights = tl.exp(scores(row, key, head, D, j, visible, dims, scale) - largest)
        values = tl.load(value + head + j[:, None].to(tl.int64) * D + dims[None, :],
                         mask=(j[:, None] < visible) & (dims[None, :] < D), other=0.0)
        total += tl.sum(weights, 0)
        sums += tl.sum(weights[:, None] * values.to(tl.float32), 0)
    tl.store(output + own + dims, (sums / total).to(output.dtype.element_ty), mask=dims < D)
