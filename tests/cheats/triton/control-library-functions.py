# Functions of the device library that comes with the compiler.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: control
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    tl.store(out + i, libdevice.fma(a + tl.zeros((BLOCK,), tl.float32), tl.load(x + i, mask=inside), tl.load(y + i, mask=inside)), mask=inside)
