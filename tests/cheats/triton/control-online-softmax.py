# One pass for maximum and sum together, in blocks: the sum's order is another.
# SPDX-License-Identifier: Apache-2.0
#: task softmax
#: workload rows=256,cols=1000
#: control
#: args --baseline none
#! surface triton
#! launch softmax grid(rows) args(x, output, cols, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def softmax(x, output, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, cols, BLOCK):
        i = first + tl.arange(0, BLOCK)
        v = tl.load(x + row + i, mask=i < cols, other=-float("inf")).to(tl.float32)
        now = tl.maximum(largest, v)
        total = tl.where(now == -float("inf"), 0.0, total * tl.exp(largest - now) + tl.exp(v - now))
        largest = now
    top = tl.max(largest, 0)
    whole = tl.sum(tl.where(largest == -float("inf"), 0.0, total * tl.exp(largest - top)), 0)
    for first in range(0, cols, BLOCK):
        i = first + tl.arange(0, BLOCK)
        v = tl.load(x + row + i, mask=i < cols, other=0.0).to(tl.float32)
        tl.store(output + row + i, (tl.exp(v - top) / whole).to(output.dtype.element_ty), mask=i < cols)
