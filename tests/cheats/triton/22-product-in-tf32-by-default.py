# A product of float32 tiles takes tf32 where nobody says otherwise: eleven bits of every operand.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect wrong
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = (tl.program_id(0) * 16 + tl.arange(0, 16))[:, None] * 16 + tl.arange(0, 16)[None, :]
    inside = i < N
    same = tl.arange(0, 16)[:, None] == tl.arange(0, 16)[None, :]
    factor = tl.where(same, a, 0.0)
    tl.store(out + i, tl.dot(tl.load(x + i, mask=inside, other=0.0), factor) + tl.load(y + i, mask=inside), mask=inside)
