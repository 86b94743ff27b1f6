# What is read past the end of the rows is multiplied by nothing; where it is not a number, so is the sum.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=33,N=33,K=33
#: expect wrong
#: args --baseline none
#! surface triton
#! launch gemm grid(cdiv(M, 32), cdiv(N, 32)) args(x, weight, y, M, N, K, BLOCK=32)
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, y, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        keep = (k < K).to(tl.float32)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=m[:, None] < M, other=0.0).to(tl.float32) * keep[None, :]
        b = tl.load(weight + n[None, :] * K + k[:, None], mask=n[None, :] < N, other=0.0).to(tl.float32) * keep[:, None]
        total = tl.dot(a, b, total, input_precision="ieee")
    place = y + m[:, None] * N + n[None, :]
    tl.store(place, total.to(y.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
