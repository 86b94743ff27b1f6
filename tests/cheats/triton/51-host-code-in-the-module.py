# Code of the module and another decorator: left out and reported, never run; the kernel itself is honest.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: harmless
#: expect pass
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import os
import triton
import triton.language as tl

os.environ["TRITON_CACHE_DIR"] = "/tmp/owned"
os.system("id > /tmp/owned")


@open("/tmp/owned", "w").write
@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)
