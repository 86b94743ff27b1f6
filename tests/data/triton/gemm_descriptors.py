#! surface triton
#! param BM = 128 {64, 128}
#! param BN = 256 {128, 256}
#! param BK = 64 {64, 128}
#! tensormap tA: x box(BK, BM)
#! tensormap tB: weight box(BK, BN)
#! tensormap tC: y box(BN, BM)
#! launch matmul grid(cdiv(M, BM) * cdiv(N, BN)) warps(8) stages(4) args(tA, tB, tC, M, N, K, GROUP=8)
import os
import triton
import triton.language as tl

@triton.jit
def matmul(da, db, dc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    num_m, num_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    per = GROUP * num_n
    first = (pid // per) * GROUP
    size = min(num_m - first, GROUP)
    pm, pn = first + (pid % per) % size, (pid % per) // size
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(da.load([pm * BM, k * BK]), db.load([pn * BN, k * BK]).T, acc)
    dc.store([pm * BM, pn * BN], acc.to(dc.dtype))
