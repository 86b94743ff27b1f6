# Sixteen stages of tiles that fill shared memory twice.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: expect no_compile refused
#: args --baseline none
#! surface triton
#! launch gemm grid(cdiv(M, 128), cdiv(N, 128)) stages(16) args(x, weight, y, M, N, K, BLOCK=128)
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, y, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(weight + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(a, b, total)
    place = y + m[:, None] * N + n[None, :]
    tl.store(place, total.to(y.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
