# Four slices of the sum, each added to cleared scratch by atomics; the last bits differ from run to run, as declared.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: control
#: args --baseline none
#! surface triton
#! nondeterministic
#! buffer sums: f32[M, N] zero
#! launch slices grid(cdiv(M, 64), cdiv(N, 64), 4) args(x, weight, sums, M, N, K, BLOCK=64)
#! launch narrow grid(cdiv(M * N, 1024)) args(sums, y, M * N, BLOCK=1024)
import triton
import triton.language as tl


@triton.jit
def slices(x, weight, sums, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(tl.program_id(2) * BLOCK, K, 4 * BLOCK):
        k = first + tl.arange(0, BLOCK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(weight + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(a, b, total)
    tl.atomic_add(sums + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def narrow(sums, y, count, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(sums + i, mask=i < count).to(y.dtype.element_ty), mask=i < count)
