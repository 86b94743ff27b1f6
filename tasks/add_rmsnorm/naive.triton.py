# new_residual = x + residual, output = RMSNorm(x + residual) * weight: one program per row, two passes, float32 inside.
# The norm takes the float32 sum, not the rounded one that is stored.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch add_rmsnorm grid(rows) warps(4) stages(1) args(x, residual, weight, eps, output, new_residual, hidden, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def sums(x, residual, first, i, hidden):
    left = tl.load(x + first + i, mask=i < hidden, other=0.0).to(tl.float32)
    return left + tl.load(residual + first + i, mask=i < hidden, other=0.0).to(tl.float32)


@triton.jit
def add_rmsnorm(x, residual, weight, eps, output, new_residual, hidden, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * hidden
    total = 0.0
    for at in range(0, hidden, BLOCK):
        i = at + tl.arange(0, BLOCK)
        values = sums(x, residual, first, i, hidden)
        tl.store(new_residual + first + i, values.to(new_residual.dtype.element_ty), mask=i < hidden)
        total += tl.sum(values * values, 0)
    scale = tl.rsqrt(total / hidden + eps)
    for at in range(0, hidden, BLOCK):
        i = at + tl.arange(0, BLOCK)
        factors = tl.load(weight + i, mask=i < hidden, other=0.0).to(tl.float32)
        values = sums(x, residual, first, i, hidden) * scale * factors
        tl.store(output + first + i, values.to(output.dtype.element_ty), mask=i < hidden)
