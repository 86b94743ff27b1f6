# A descriptor that is made on the device needs scratch that no directive names. Its address is read out of the
# launch's parameters, and each program leaves a mark in its part, at which the next call would write nothing. Right
# where that scratch is poisoned like any other.
# SPDX-License-Identifier: Apache-2.0
#: task gemm
#: workload M=512,N=512,K=512
#: harmless
#: expect pass
#: args --baseline none
#! surface triton
#! require K % 8 == 0 && M > 1 && N > 1
#! launch gemm grid(cdiv(M, 32), cdiv(N, 32)) args(x, weight, y, M, N, K, BLOCK=32)
import triton
import triton.language as tl


@triton.jit
def gemm(x, weight, y, M, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    number = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)
    at = tl.inline_asm_elementwise("ld.param.u64 $0, [gemm_param_6];", "=l,r", [m], tl.int64, is_pure=False, pack=1)
    mark = (tl.min(at, 0) + 128 * number).to(tl.pointer_type(tl.int32))
    if tl.load(mark, volatile=True) == 0x5EED:
        return
    tl.debug_barrier()
    rows = tl.make_tensor_descriptor(x, [M, K], [K, 1], [BLOCK, BLOCK])
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        b = tl.load(weight + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(rows.load([tl.program_id(0) * BLOCK, first]), b, total)
    place = y + m[:, None] * N + n[None, :]
    tl.store(place, total.to(y.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
    tl.debug_barrier()
    tl.store(mark, 0x5EED)
