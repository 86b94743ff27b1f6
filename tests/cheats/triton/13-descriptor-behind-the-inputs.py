# A descriptor that the kernel makes begins behind the last input, where expected values could lie.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: expect wrong crash cheat
#: args --baseline none
#! surface triton
#! require K % 8 == 0 && N % 8 == 0
#! launch gemm grid(cdiv(M, 64), cdiv(N, 64)) args(weight, y, M, N, K, BLOCK=64)
import triton
import triton.language as tl


@triton.jit
def gemm(weight, y, M, N, K, BLOCK: tl.constexpr):
    there = tl.make_tensor_descriptor(weight + N * K + 65536, [M, N], [N, 1], [BLOCK, BLOCK])
    c = tl.make_tensor_descriptor(y, [M, N], [N, 1], [BLOCK, BLOCK])
    place = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
    c.store(place, there.load(place))
