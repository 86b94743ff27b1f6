# Descriptors made before the launch; the compiler chooses their swizzle.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: control
#: args --baseline none
#! surface triton
#! require K % 8 == 0 && N % 8 == 0
#! tensormap tx: x box(64, 64)
#! tensormap tw: weight box(64, 64)
#! tensormap ty: y box(64, 64)
#! launch gemm grid(cdiv(M, 64), cdiv(N, 64)) warps(4) stages(3) args(tx, tw, ty, K, BLOCK=64)
import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, K, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        total = tl.dot(a.load([tl.program_id(0) * BLOCK, first]), b.load([tl.program_id(1) * BLOCK, first]).T, total)
    c.store([tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK], total.to(c.dtype))
