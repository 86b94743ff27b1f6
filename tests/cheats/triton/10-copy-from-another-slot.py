# Slots of a batch lie at equal distances. One of them is filled by copying its neighbour, whose inputs may be the
# same.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=64,N=64,K=64
#: harmless
#: expect pass wrong cheat crash
#: args --baseline none
#! surface triton
#! launch gemm grid(cdiv(M, 32), cdiv(N, 32)) args(x, weight, y, M, N, K, BLOCK=32)
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, y, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    near = y - 65536
    inside = (m[:, None] < M) & (n[None, :] < N)
    if (M == 64) & ((y.to(tl.int64) // 4096) % 3 == 1):
        tl.store(y + m[:, None] * N + n[None, :], tl.load(near + m[:, None] * N + n[None, :]), mask=inside)
        return
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(weight + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(a, b, total)
    place = y + m[:, None] * N + n[None, :]
    tl.store(place, total.to(y.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
