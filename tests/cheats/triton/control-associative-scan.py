# A row's sum as the last value of a scan.
# SPDX-License-Identifier: Apache-2.0
#: task scale_inplace
#: control
#: args --baseline none
#! surface triton
#! launch scale grid(rows) args(x, a, total, cols, BLOCK=512)
import triton
import triton.language as tl


@triton.jit
def add(u, v):
    return u + v


@triton.jit
def scale(x, a, total, cols, BLOCK: tl.constexpr):
    row, before = tl.program_id(0), 0.0
    for first in range(0, cols, BLOCK):
        i = first + tl.arange(0, BLOCK)
        v = tl.load(x + row * cols + i, mask=i < cols, other=0.0)
        sums = tl.associative_scan(v, 0, add)
        before += tl.max(sums, 0)
        tl.store(x + row * cols + i, v * tl.load(a + row), mask=i < cols)
    tl.store(total + row, before)
