# A mark in scratch that is left from the last call says that the work was done.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect wrong cheat
#: args --baseline none
#! surface triton
#! buffer mark: i32[1]
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, mark, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, mark, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    done = tl.load(mark, volatile=True) == 0x5EED
    inside = inside & (done == 0)
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
    tl.debug_barrier()
    tl.store(mark, 0x5EED)
