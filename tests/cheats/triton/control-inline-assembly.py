# Assembly that does one multiplication and one addition, with a comment, a register and braces of its own, and a load.
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
    u, v = tl.load(x + i, mask=inside, other=0.0), tl.load(y + i, mask=inside, other=0.0)
    w = tl.inline_asm_elementwise("""
        { // one step
            .reg .f32 t;
            mov.f32 t, $1;
            fma.rn.f32 $0, t, $2, $3;
        }""", "=f,f,f,f", [u, a + u * 0, v], tl.float32, is_pure=True, pack=1)
    tl.store(out + i, w, mask=inside)
