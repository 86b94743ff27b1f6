# The page behind the last input is read as if it held the expected values.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect wrong crash cheat
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    behind = (y.to(tl.int64) + 4 * N).to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(behind + i, mask=inside), mask=inside)
