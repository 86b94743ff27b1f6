# Quantized matrix product by its definition, one program per tile of the result, sums in int32.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch qgemm grid(cdiv(M, 32), cdiv(N, 32)) warps(4) stages(1) \
#!        args(x, weight, x_scale, weight_scale, y, M, N, K, BLOCK=32)
import triton
import triton.language as tl


@triton.jit
def qgemm(x, weight, x_scale, weight_scale, y, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.int32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        a = tl.load(x + m[:, None].to(tl.int64) * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0)
        b = tl.load(weight + n[None, :].to(tl.int64) * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0)
        total = tl.dot(a, b, total, out_dtype=tl.int32)
    rows = tl.load(x_scale + m, mask=m < M, other=0.0)
    columns = tl.load(weight_scale + n, mask=n < N, other=0.0)
    result = total.to(tl.float32) * rows[:, None] * columns[None, :]
    tl.store(y + m[:, None].to(tl.int64) * N + n[None, :], result, mask=(m[:, None] < M) & (n[None, :] < N))
