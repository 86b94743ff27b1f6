# A pointer made out of an integer constant reads what lies at a guessed place of the device.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect crash wrong cheat
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    forged = tl.full((BLOCK,), 0x7F0000000000, tl.int64).to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(forged + i, mask=inside), mask=inside)
