# The first program of a row writes the sum of what the others have added so far.
# SPDX-License-Identifier: Apache-2.0
#: task scale_inplace
#: expect wrong
#: args --baseline none
#! surface triton
#! nondeterministic
#! buffer sums: f32[rows] zero
#! launch scale grid(cdiv(cols, 128), rows) args(x, a, total, sums, cols, BLOCK=128)
import triton
import triton.language as tl


@triton.jit
def scale(x, a, total, sums, cols, BLOCK: tl.constexpr):
    row, i = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=0.0)
    tl.store(x + row * cols + i, v * tl.load(a + row), mask=i < cols)
    tl.atomic_add(sums + row, tl.sum(v, 0))
    if tl.program_id(0) == 0:
        tl.store(total + row, tl.load(sums + row, volatile=True))
