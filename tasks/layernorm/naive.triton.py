# LayerNorm over the last axis, one program per row, three passes, float32 inside.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch layernorm grid(rows) warps(4) stages(1) args(x, weight, bias, eps, output, hidden, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def layernorm(x, weight, bias, eps, output, hidden, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * hidden
    total = 0.0
    for at in range(0, hidden, BLOCK):
        i = at + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + first + i, mask=i < hidden, other=0.0).to(tl.float32), 0)
    mean = total / hidden
    squares = 0.0
    for at in range(0, hidden, BLOCK):
        i = at + tl.arange(0, BLOCK)
        values = tl.load(x + first + i, mask=i < hidden, other=0.0).to(tl.float32)
        centred = tl.where(i < hidden, values - mean, 0.0)
        squares += tl.sum(centred * centred, 0)
    scale = tl.rsqrt(squares / hidden + eps)
    for at in range(0, hidden, BLOCK):
        i = at + tl.arange(0, BLOCK)
        values = tl.load(x + first + i, mask=i < hidden, other=0.0).to(tl.float32)
        factors = tl.load(weight + i, mask=i < hidden, other=0.0).to(tl.float32)
        shifts = tl.load(bias + i, mask=i < hidden, other=0.0).to(tl.float32)
        result = (values - mean) * scale * factors + shifts
        tl.store(output + first + i, result.to(output.dtype.element_ty), mask=i < hidden)
