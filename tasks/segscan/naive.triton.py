# Running sums of every segment, one program per segment: a block of values at a time, and the sum of the blocks before.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch segscan grid(S) warps(1) stages(1) args(values, offsets, output, BLOCK=64)
import triton
import triton.language as tl


@triton.jit
def segscan(values, offsets, output, BLOCK: tl.constexpr):
    s = tl.program_id(0)
    end = tl.load(offsets + s + 1)
    before = 0.0
    for first in range(tl.load(offsets + s), end, BLOCK):
        i = first + tl.arange(0, BLOCK)
        own = tl.load(values + i, mask=i < end, other=0.0)
        tl.store(output + i, before + tl.cumsum(own, 0), mask=i < end)
        before += tl.sum(own, 0)
