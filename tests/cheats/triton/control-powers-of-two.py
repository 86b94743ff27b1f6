# Mathematics of Triton's own modules, by three of their names, and a message from the device that is never sent.
# SPDX-License-Identifier: Apache-2.0
#: task softmax
#: control
#: args --baseline none
#! surface triton
#! let BLOCK = pow2(cols)
#! launch softmax grid(rows) warps(8) args(x, output, cols, BLOCK=BLOCK)
import triton
import triton.language as tl
from triton.language.math import exp2


@triton.jit
def softmax(x, output, cols, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0).to(tl.int64) * cols
    v = tl.load(x + at + i, mask=i < cols, other=-float("inf")).to(tl.float32)
    powers = exp2((v - tl.max(v, 0)) * 1.4426950408889634)
    total = tl.math.abs(tl.sum(powers, 0))
    if total < 0:
        tl.device_print("no sum of powers is negative", total)
    tl.store(output + at + i, tl.fdiv(powers, total).to(output.dtype.element_ty), mask=i < cols)
