# A loop that never ends.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect hang
#: args --baseline none
#! surface triton
#! buffer mark: i32[1] zero
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, mark, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, mark, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    seen = tl.load(mark, volatile=True)
    while seen == 0:
        seen = tl.load(mark, volatile=True)
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
