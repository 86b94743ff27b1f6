# As many programs as the device has room for, each of which takes every such tile.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: control
#: args --baseline none
#! surface triton
#! launch saxpy grid(min(264, cdiv(N, 256))) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(N, BLOCK), tl.num_programs(0)):
        i = tile * BLOCK + tl.arange(0, BLOCK)
        inside = i < N
        tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
