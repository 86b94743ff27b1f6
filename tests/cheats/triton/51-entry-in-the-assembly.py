# Assembly that ends the kernel and begins another.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect no_compile
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    seen = tl.inline_asm_elementwise("mov.b32 $0, $1; ret; } .visible .entry other() {", "=r,r", [i], tl.int32, is_pure=False, pack=1)
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
