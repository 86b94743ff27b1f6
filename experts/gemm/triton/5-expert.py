# Matrix product, rung 5: as many programs as multiprocessors, each of which takes every such tile.
# Adds persistent_grid: both loops are one to the compiler, so that the first loads of a program's next tile are on their
# way while the last one is still multiplied and stored.  The result leaves in two halves, whose staging area is half as
# large: room for the stages.
# Needs K and N multiples of 8; compute capability 9.0.  PROGRAMS is the number of multiprocessors.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! param BM = 128 {64, 128}
#! param BN = 256 {128, 256}
#! param BK = 64 {64, 128}
#! param STAGES = 3 {2, 3, 4}
#! param WARPS = 8 {4, 8}
#! param GROUP = 8 {4, 8, 16}
#! param PROGRAMS = 132 {114, 132, 264}
#! require K % 8 == 0 && N % 8 == 0
#! tensormap tx: x box(BK, BM)
#! tensormap tw: weight box(BK, BN)
#! tensormap ty: y box(BN / 2, BM)
#! launch gemm grid(min(PROGRAMS, cdiv(M, BM) * cdiv(N, BN))) warps(WARPS) stages(STAGES) args(tx, tw, ty, M, N, K)
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
def gemm(tx, tw, ty, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    HALF: tl.constexpr = BN // 2
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tl.cdiv(N, BN), tl.num_programs(0), flatten=True):
        row, column = place_of(tile, M, N, BM, BN, GROUP)
        total = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            total = tl.dot(tx.load([row, k * BK]), tw.load([column, k * BK]).T, total)
        left, right = total.reshape((BM, 2, HALF)).permute((0, 2, 1)).split()
        ty.store([row, column], left.to(ty.dtype))
        ty.store([row, column + HALF], right.to(ty.dtype))
