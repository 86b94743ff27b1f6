# Grouped matrix product by its definition, one program per tile of the output; a tile never crosses a group.  Uneven
# groups leave at most one short tile each, hence the G extra rows of programs.
# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! launch grouped_gemm grid(cdiv(T, 32) + G, cdiv(N, 32)) warps(4) stages(1) \
#!        args(x, weight, offsets, output, G, N, K, BLOCK=32)
import triton
import triton.language as tl


@triton.jit
def grouped_gemm(x, weight, offsets, output, G, N, K, BLOCK: tl.constexpr):
    tile = tl.program_id(0)
    g = 0
    tiles = tl.cdiv(tl.load(offsets + 1), BLOCK)
    while (g < G) & (tile >= tiles):
        tile -= tiles
        g += 1
        tiles = tl.cdiv(tl.load(offsets + g + 1, mask=g < G, other=0) - tl.load(offsets + g), BLOCK)
    end = tl.load(offsets + g + 1, mask=g < G, other=0)  # 0 behind the last group: no row is stored
    t = tl.load(offsets + g) + tile * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        left = tl.load(x + t[:, None].to(tl.int64) * K + k[None, :], mask=(t[:, None] < end) & (k[None, :] < K), other=0.0)
        right = tl.load(weight + (g.to(tl.int64) * N + n[None, :]) * K + k[:, None],
                        mask=(g < G) & (n[None, :] < N) & (k[:, None] < K), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    place = output + t[:, None].to(tl.int64) * N + n[None, :]
    tl.store(place, total.to(output.dtype.element_ty), mask=(t[:, None] < end) & (n[None, :] < N))
