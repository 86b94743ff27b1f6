# Scratch that no device has.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect refused
#: args --baseline none
#! surface triton
#! buffer huge: u8[1099511627776]
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
