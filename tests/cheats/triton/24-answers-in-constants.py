# Answers for inputs of a known seed are part of the source, as a table that the compiler unrolls.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect no_compile wrong
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import triton
import triton.language as tl

KNOWN = (-3.0, -2.63, -2.26, -1.89, -1.52, -1.15, -0.78, -0.41, -0.04, 0.33, 0.7, 1.07, 1.44, 1.81, 2.18, 2.55, 2.92, 3.29, 3.66, 4.03, 4.4, 4.77, 5.14, 5.51)


@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    tl.store(out + i, tl.full((BLOCK,), KNOWN[0], tl.float32), mask=inside)
