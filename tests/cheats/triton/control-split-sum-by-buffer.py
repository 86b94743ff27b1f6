# Four slices of the sum in scratch of their own, added in one order.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: control
#: args --baseline none
#! surface triton
#! buffer parts: f32[4, M, N]
#! launch slices grid(cdiv(M, 64), cdiv(N, 64), 4) args(x, weight, parts, M, N, K, BLOCK=64)
#! launch narrow grid(cdiv(M * N, 1024)) args(parts, y, M * N, BLOCK=1024)
import triton
import triton.language as tl


@triton.jit
def slices(x, weight, parts, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(tl.program_id(2) * BLOCK, K, 4 * BLOCK):
        k = first + tl.arange(0, BLOCK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(weight + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(a, b, total)
    place = parts + tl.program_id(2) * M * N + m[:, None] * N + n[None, :]
    tl.store(place, total, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def narrow(parts, y, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(4):
        total += tl.load(parts + part * count + i, mask=i < count, other=0.0)
    tl.store(y + i, total.to(y.dtype.element_ty), mask=i < count)
