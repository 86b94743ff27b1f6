# The work passes through the denormals of double.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: control
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    down = tl.load(x + i, mask=inside).to(tl.float64) * 5e-313
    back = down * 2e300 * 1e12
    tl.store(out + i, (a * back + tl.load(y + i, mask=inside)).to(tl.float32), mask=inside)
