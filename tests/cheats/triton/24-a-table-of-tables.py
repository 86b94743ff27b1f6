# A table too large for one tuple of constants is a tuple of tuples.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect no_compile
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl

ROW = (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5, 16.5, 17.5, 18.5, 19.5, 20.5, 21.5, 22.5, 23.5, 24.5, 25.5, 26.5, 27.5, 28.5, 29.5, 30.5, 31.5)
HALF = (ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW)
KNOWN = (HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF, HALF)


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    tl.store(out + i, tl.full((BLOCK,), KNOWN[3][7], tl.float32), mask=inside)
