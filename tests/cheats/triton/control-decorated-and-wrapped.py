# A kernel as it stands in a library: tuned by a decorator, called by a wrapper, imported beside torch. All of that is
# left out and reported.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: control
#: args --baseline none
#! surface triton
#! launch saxpy grid(cdiv(N, 256)) args(a, x, y, out, N, BLOCK=256)
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 512}, num_warps=8)], key=["N"])
@triton.jit
def saxpy(a, x, y, out, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < N
    tl.store(out + i, a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


def run(a, x, y):
    out = torch.empty_like(x)
    saxpy[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](a, x, y, out, x.numel())
    return out
