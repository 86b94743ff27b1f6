#! surface triton
#! param BM = 128 {64, 128}
#! param BN = 256 {128, 256}
#! param BK = 64 {64, 128}

#! require K % 8 == 0 && N % 8 == 0
#! launch matmul grid(cdiv(M, BM) * cdiv(N, BN)) warps(8) stages(4) args(x, weight, y, M, N, K, GROUP=8)
import os
import triton
import triton.language as tl

@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    num_m, num_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    per = GROUP * num_n
    first = (pid // per) * GROUP
    size = min(num_m - first, GROUP)
    pm, pn = first + (pid % per) % size, (pid % per) // size
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(da.load([pm * BM, k * BK]), db.load([pn * BN, k * BK]).T, acc)
    dc.store([pm * BM, pn * BN], acc.to(dc.dtype))
