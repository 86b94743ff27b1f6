# Slowness that proves nothing: every program sleeps.
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
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    seen = tl.inline_asm_elementwise("nanosleep.u32 100000; mov.b32 $0, $1;", "=r,r", [i], tl.int32, is_pure=False, pack=1)
    inside = inside & (seen >= 0)
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
