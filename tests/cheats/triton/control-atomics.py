# A sum by atomics into cleared scratch; the last bits differ from run to run, as declared.
# SPDX-License-Identifier: Apache-2.0
#: task scale_inplace
#: control
#: args --baseline none
#! surface triton
#! nondeterministic
#! buffer sums: f32[rows] zero
#! launch scale grid(cdiv(cols, 128), rows) args(x, a, sums, cols, BLOCK=128)
#! launch finish grid(rows) args(total, sums)
import triton
import triton.language as tl


@triton.jit
def scale(x, a, sums, cols, BLOCK: tl.constexpr):
    row, i = tl.program_id(1), tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=0.0)
    tl.store(x + row * cols + i, v * tl.load(a + row), mask=i < cols)
    tl.atomic_add(sums + row, tl.sum(v, 0))


@triton.jit
def finish(total, sums):
    tl.store(total + tl.program_id(0), tl.load(sums + tl.program_id(0)))
