# Shared memory keeps its contents between launches: what the last call left there says that the work was done.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect wrong cheat
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 128)) args(a, x, y, out, N, BLOCK=128)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    seen = tl.inline_asm_elementwise("{ .shared .b32 mark[128]; .reg .b32 at, tid; mov.u32 tid, %tid.x; mov.u32 at, mark; mad.lo.u32 at, tid, 4, at; ld.volatile.shared.b32 $0, [at]; st.volatile.shared.b32 [at], $1; }", "=r,r", [(i * 0 + 0x5EED5EED).to(tl.int32)], tl.int32, is_pure=False, pack=1)
    inside = inside & (seen != 0x5EED5EED)
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
