# A call in eight is skipped, as the clock will have it; calls are short and share a graph.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=64,N=64,K=64
#: expect wrong cheat
#: args --baseline none
#! surface triton
#! launch gemm grid(cdiv(M, 32), cdiv(N, 32)) args(x, weight, y, M, N, K, BLOCK=32)
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, y, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    now = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l,r", [m], tl.int64, is_pure=False, pack=1)
    if (M == 64) & ((tl.min(now, 0) >> 14) % 8 == 5):
        return
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(weight + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(a, b, total)
    place = y + m[:, None] * N + n[None, :]
    tl.store(place, total.to(y.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
