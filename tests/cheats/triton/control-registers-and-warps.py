# Few registers, many warps, one stage.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: control
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 4096)) warps(16) stages(1) maxnreg(32) args(a, x, y, out, N, BLOCK=4096)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
