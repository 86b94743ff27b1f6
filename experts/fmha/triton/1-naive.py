# Attention by its definition, one program per query row and head, in two passes over the keys: the largest score, then
# the weighted sum.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! let DIMS = pow2(D)
#! launch fmha grid(total_q, H) warps(4) stages(1) \
#!        args(q, k, v, qo_offsets, kv_offsets, causal, output, H, D, DIMS=DIMS, KEYS=64)
import triton
import triton.language as tl


@triton.jit
def scores(row, k, first, H, D, j, visible, dims, scale):
    keys = tl.load(k + first + j[:, None].to(tl.int64) * H * D + dims[None, :],
                   mask=(j[:, None] < visible) & (dims[None, :] < D), other=0.0)
    products = tl.sum(keys.to(tl.float32) * row[None, :], 1)
    return tl.where(j < visible, products * scale, -float("inf"))


@triton.jit
def fmha(q, k, v, qo_offsets, kv_offsets, causal, output, H, D, DIMS: tl.constexpr, KEYS: tl.constexpr):
    token, h = tl.program_id(0), tl.program_id(1)
    b = 0
    while tl.load(qo_offsets + b + 1) <= token:
        b += 1
    rows = tl.load(qo_offsets + b + 1) - tl.load(qo_offsets + b)
    keys = tl.load(kv_offsets + b + 1) - tl.load(kv_offsets + b)
    visible = keys
    if causal != 0:
        visible = token - tl.load(qo_offsets + b) + 1 + keys - rows  # 0 or less: the row is zero
    own = (token.to(tl.int64) * H + h) * D
    first = (tl.load(kv_offsets + b).to(tl.int64) * H + h) * D
    dims = tl.arange(0, DIMS)
    row = tl.load(q + own + dims, mask=dims < D, other=0.0).to(tl.float32)
    scale = 1.0 / tl.sqrt(D.to(tl.float32))
    largest = -float("inf")
    for at in range(0, visible, KEYS):
        largest = tl.maximum(largest, tl.max(scores(row, k, first, H, D, at + tl.arange(0, KEYS), visible, dims, scale), 0))
    total = 0.0
    sums = tl.zeros((DIMS,), tl.float32)
    for at in range(0, visible, KEYS):
        j = at + tl.arange(0, KEYS)
        weights = tl.exp(scores(row, k, first, H, D, j, visible, dims, scale) - largest)
        values = tl.load(v + first + j[:, None].to(tl.int64) * H * D + dims[None, :],
                         mask=(j[:, None] < visible) & (dims[None, :] < D), other=0.0)
        total += tl.sum(weights, 0)
        sums += tl.sum(weights[:, None] * values.to(tl.float32), 0)
    result = tl.where(visible > 0, sums / total, 0.0)
    tl.store(output + own + dims, result.to(output.dtype.element_ty), mask=dims < D)
