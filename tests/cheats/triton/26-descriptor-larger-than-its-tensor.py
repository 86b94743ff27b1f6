# A descriptor that the kernel makes says that the output has 64 rows more than it has: nothing clips the last tiles.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: expect wrong
#: args --baseline none
#! surface triton
#! require K % 8 == 0 && N % 8 == 0
#! launch gemm grid(cdiv(M, 64) + 1, cdiv(N, 64)) args(x, weight, y, M, N, K, BLOCK=64)
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, y, M, N, K, BLOCK: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BLOCK, BLOCK])
    b = tl.make_tensor_descriptor(weight, [N, K], [K, 1], [BLOCK, BLOCK])
    c = tl.make_tensor_descriptor(y, [M + BLOCK, N], [N, 1], [BLOCK, BLOCK])
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        total = tl.dot(a.load([tl.program_id(0) * BLOCK, first]), b.load([tl.program_id(1) * BLOCK, first]).T, total)
    c.store([tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK], total.to(c.dtype))
