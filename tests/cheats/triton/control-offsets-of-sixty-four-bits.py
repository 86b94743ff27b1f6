# Rows beyond the largest integer of 32 bits, with offsets of 64.
# SPDX-License-Identifier: Apache-2.0
#: task rmsnorm
#: workload rows=262400,hidden=8192
#: control
#: args --baseline none --quick
#! surface triton
#! let BLOCK = pow2(hidden)
#! launch rmsnorm grid(rows) warps(8) args(x, weight, eps, output, hidden, BLOCK=BLOCK)
import triton
import triton.language as tl


@triton.jit
def rmsnorm(x, weight, eps, output, hidden, BLOCK: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    v = tl.load(x + (row * hidden + i), mask=i < hidden, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, 0) / hidden + eps)
    w = tl.load(weight + i, mask=i < hidden, other=0.0).to(tl.float32)
    tl.store(output + (row * hidden + i), (v * scale * w).to(output.dtype.element_ty), mask=i < hidden)
