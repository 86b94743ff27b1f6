# The compiler is asked for warps of their own that load, and so for more threads than the launch says.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: control
#: args --baseline none
#! surface triton
#! require K % 8 == 0 && N % 8 == 0
#! tensormap ta: x box(64, 128)
#! tensormap tb: weight box(64, 128)
#! tensormap tc: y box(128, 128)
#! launch gemm grid(cdiv(M, 128), cdiv(N, 128)) warps(8) stages(3) args(ta, tb, tc, K, BLOCK=128)
import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, K, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in tl.range(0, K, 64, warp_specialize=True):
        total = tl.dot(a.load([tl.program_id(0) * BLOCK, first]), b.load([tl.program_id(1) * BLOCK, first]).T, total)
    c.store([tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK], total.to(c.dtype))
