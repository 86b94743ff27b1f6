# Matrix product, rung 7: as many programs as multiprocessors, each with a loader of its own.
# Adds persistent_grid to warp_specialize: while two groups of warps still store a tile, the loader fetches the next one's
# operands as far as there are stages.
# Needs K a multiple of 8; compute capability 9.0.  PROGRAMS is the number of multiprocessors.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! param BM = 128 {128, 256}
#! param BN = 256 {128, 256}
#! param BK = 64 {64, 128}
#! param STAGES = 4 {2, 3, 4}
#! param GROUP = 8 {4, 8, 16}
#! param PROGRAMS = 132 {114, 132, 264}
#! require K % 8 == 0
#! tensormap tx: x box(BK, BM)
#! tensormap tw: weight box(BK, BN)
#! launch gemm grid(min(PROGRAMS, cdiv(M, BM) * cdiv(N, BN))) warps(4) stages(STAGES) args(tx, tw, y, M, N, K)
import triton
import triton.language as tl


@triton.jit
def place_of(tile, M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = tile // (GROUP * columns) * GROUP
    height = tl.minimum(rows - first, GROUP)
    inside = tile % (GROUP * columns)
    return (first + inside % height) * BM, inside // height * BN


@triton.jit
def gemm(tx, tw, y, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0), warp_specialize=True):
        row, column = place_of(tile, M, N, BM, BN, GROUP)
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            total = tl.dot(tx.load([row, k * BK]), tw.load([column, k * BK]).T, total)
        m = row + tl.arange(0, BM)
        n = column + tl.arange(0, BN)
        place = y + m[:, None].to(tl.int64) * N + n[None, :]
        tl.store(place, total.to(y.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))
