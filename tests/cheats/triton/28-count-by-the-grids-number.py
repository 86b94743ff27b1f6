# Every launch has a number, which assembly can read: early ones are the checked ones.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: harmless
#: expect wrong cheat pass
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    number = tl.inline_asm_elementwise("mov.u64 $0, %gridid;", "=l,r", [i], tl.int64, is_pure=False, pack=1)
    inside = inside & ((number >= 0) | (i < 16))
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
