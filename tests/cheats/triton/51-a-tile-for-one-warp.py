# A tile of 32768 elements for one warp is megabytes of straight code for the assembler.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: harmless
#: expect no_compile refused pass
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 32768)) warps(1) args(a, x, y, out, N, BLOCK=32768)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
