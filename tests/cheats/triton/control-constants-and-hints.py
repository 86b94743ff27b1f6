# A short table of constants, honest hints about alignment, and eviction policies.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: control
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl

WEIGHTS = tl.constexpr((2.0, 2.0, 0.5))


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.max_contiguous(tl.multiple_of(tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), BLOCK), BLOCK)
    inside = i < N
    u = tl.load(x + i, mask=inside, eviction_policy="evict_first")
    tl.store(out + i, (a * u * WEIGHTS[0] + tl.load(y + i, mask=inside) * WEIGHTS[1]) * WEIGHTS[2], mask=inside, cache_modifier=".cs")
