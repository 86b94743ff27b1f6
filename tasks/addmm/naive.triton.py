# Matrix product plus a bias by its definition, one program per tile of the output, no grouping and no pipeline.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch addmm grid(cdiv(M, 32), cdiv(N, 32)) warps(4) stages(1) args(bias, mat1, mat2, output, M, N, K, BLOCK=32)
import triton
import triton.language as tl


@triton.jit
def addmm(bias, mat1, mat2, output, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        left = tl.load(mat1 + m[:, None].to(tl.int64) * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(mat2 + k[:, None].to(tl.int64) * N + n[None, :], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    total += tl.load(bias + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    place = output + m[:, None].to(tl.int64) * N + n[None, :]
    tl.store(place, total.to(output.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
