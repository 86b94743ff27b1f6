# One matrix product per batch by its definition, one program per tile of the output, no grouping and no pipeline.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch batched_gemm grid(cdiv(M, 32), cdiv(N, 32), B) warps(4) stages(1) args(a, b, output, M, N, K, BLOCK=32)
import triton
import triton.language as tl


@triton.jit
def batched_gemm(a, b, output, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    p = tl.program_id(2).to(tl.int64)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        left = tl.load(a + (p * M + m[:, None]) * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(b + (p * K + k[:, None]) * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    place = output + (p * M + m[:, None]) * N + n[None, :]
    tl.store(place, total.to(output.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
