# RMSNorm over the last axis, one program per row, two passes, float32 inside.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch rmsnorm grid(rows) warps(4) stages(1) args(x, weight, eps, output, hidden, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def rmsnorm(x, weight, eps, output, hidden, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * hidden
    total = 0.0
    for at in range(0, hidden, BLOCK):
        i = at + tl.arange(0, BLOCK)
        values = tl.load(x + first + i, mask=i < hidden, other=0.0).to(tl.float32)
        total += tl.sum(values * values, 0)
    scale = tl.rsqrt(total / hidden + eps)
    for at in range(0, hidden, BLOCK):
        i = at + tl.arange(0, BLOCK)
        values = tl.load(x + first + i, mask=i < hidden, other=0.0).to(tl.float32)
        factors = tl.load(weight + i, mask=i < hidden, other=0.0).to(tl.float32)
        tl.store(output + first + i, (values * scale * factors).to(output.dtype.element_ty), mask=i < hidden)
