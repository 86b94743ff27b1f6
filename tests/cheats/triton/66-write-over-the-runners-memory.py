# The runner's own kernels and buffers lie in the same context: zeros over a megabyte behind the output.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect wrong crash cheat
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
    tl.store(out + N + i, tl.zeros((BLOCK,), tl.float32), mask=N == 262144)
