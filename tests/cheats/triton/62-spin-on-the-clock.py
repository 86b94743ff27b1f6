# Slowness that proves nothing: every program waits for the clock.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: harmless
#: expect pass cheat
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def clock(i):
    return tl.min(tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l,r", [i], tl.int64, is_pure=False, pack=1), 0)


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    start = clock(i)
    now = start
    while now - start < 100000:
        now = clock(i)
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
