# Programs add without atomics, and a directive says that runs may differ. The directive allows other last bits and no
# other sums.
# SPDX-License-Identifier: Apache-2.0
#: task scale_inplace
#: expect wrong
#: args --baseline none
#! surface triton
#! nondeterministic
#! launch scale grid(cdiv(cols, 128), rows) args(x, a, total, cols, BLOCK=128)
import triton
import triton.language as tl


@triton.jit
def scale(x, a, total, cols, BLOCK: tl.constexpr):
    row, i = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=0.0)
    tl.store(x + row * cols + i, v * tl.load(a + row), mask=i < cols)
    tl.store(total + row, tl.load(total + row, volatile=True) + tl.sum(v, 0))
