# Whatever lies in front of the output and looks like the right answer is taken for the answer.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: harmless
#: expect pass wrong crash cheat
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    right = a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside)
    near = (out.to(tl.int64) - 4 * 262144).to(tl.pointer_type(tl.float32))
    if N == 262144:
        found = tl.load(near + i, mask=inside)
        right = tl.where(found == right, found, right)
    tl.store(out + i, right, mask=inside)
