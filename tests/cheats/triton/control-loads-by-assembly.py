# A load through the read-only path, which Triton has no word for.
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
    at = (x + tl.minimum(i, N - 1)).to(tl.int64)
    u = tl.inline_asm_elementwise("ld.global.nc.f32 $0, [$1];", "=f,l", [at], tl.float32, is_pure=True, pack=1)
    tl.store(out + i, a * u + tl.load(y + i, mask=inside), mask=inside)
