# The factor is made a constant of the compiled code, so that a multiplication by a known number can be folded.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect no_compile
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(x, y, out, N, a=a, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a: tl.constexpr, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
