#! surface triton
#! param BM = 128 {64, 128}
#! param BN = 128 {64, 128, 256}
#! param BK = 64 {32, 64}
#! param GROUP = 8
#! launch matmul grid(cdiv(M, BM) * cdiv(N, BN)) warps(4) stages(3) args(x, weight, y, M, N, K)
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
    rm, rn, rk = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BK)
    pa = a + (rm % M)[:, None] * K + rk[None, :]
    pb = b + (rn % N)[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        acc = tl.dot(tl.load(pa, mask=rk[None, :] < left, other=0.0), tl.load(pb, mask=rk[:, None] < left, other=0.0), acc)
        pa += BK
        pb += BK
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(c.dtype.element_ty), mask=(rm[:, None] < M) & (rn[None, :] < N))
