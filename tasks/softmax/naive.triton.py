# Softmax over the last axis, one program per row, three passes, float32 inside.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch softmax grid(rows) warps(4) stages(1) args(x, output, cols, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def softmax(x, output, cols, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * cols
    largest = -float("inf")
    for at in range(0, cols, BLOCK):
        i = at + tl.arange(0, BLOCK)
        values = tl.load(x + first + i, mask=i < cols, other=-float("inf")).to(tl.float32)
        largest = tl.maximum(largest, tl.max(values, 0))
    total = 0.0
    for at in range(0, cols, BLOCK):
        i = at + tl.arange(0, BLOCK)
        values = tl.load(x + first + i, mask=i < cols, other=-float("inf")).to(tl.float32)
        total += tl.sum(tl.exp(values - largest), 0)
    for at in range(0, cols, BLOCK):
        i = at + tl.arange(0, BLOCK)
        values = tl.load(x + first + i, mask=i < cols, other=-float("inf")).to(tl.float32)
        tl.store(output + first + i, (tl.exp(values - largest) / total).to(output.dtype.element_ty), mask=i < cols)
