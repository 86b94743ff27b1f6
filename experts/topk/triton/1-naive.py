# Top-K by rank: a value's place is the number of values of its row that are larger, or equal and further left.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch topk grid(cdiv(S, 64), B) warps(4) stages(1) args(x, values, indices, S, K, OWN=64, OTHERS=64)
import triton
import triton.language as tl


@triton.jit
def topk(x, values, indices, S, K, OWN: tl.constexpr, OTHERS: tl.constexpr):
    i = tl.program_id(0) * OWN + tl.arange(0, OWN)
    b = tl.program_id(1).to(tl.int64)
    own = tl.load(x + b * S + i, mask=i < S, other=0.0)
    rank = tl.zeros((OWN,), tl.int32)
    for first in range(0, S, OTHERS):
        j = first + tl.arange(0, OTHERS)
        other = tl.load(x + b * S + j, mask=j < S, other=0.0)
        ahead = (other[None, :] > own[:, None]) | ((other[None, :] == own[:, None]) & (j[None, :] < i[:, None]))
        rank += tl.sum((ahead & (j[None, :] < S)).to(tl.int32), 1)
    kept = (i < S) & (rank < K)
    tl.store(values + b * K + rank, own, mask=kept)
    tl.store(indices + b * K + rank, i.to(tl.int64), mask=kept)
