# Assertions that hold and a message at compile time.
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
    tl.static_assert(BLOCK == 256)
    tl.static_print("block", BLOCK)
    tl.device_assert(N > 0, "empty")
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
