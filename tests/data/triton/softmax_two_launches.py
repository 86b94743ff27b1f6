#! surface triton
#! let BLOCK = pow2(cols)
#! buffer sums: f32[rows]
#! buffer tops: f32[rows]
#! launch stats grid(rows) warps(4) args(x, sums, tops, cols, BLOCK=BLOCK)
#! launch scale grid(rows) warps(4) args(x, sums, tops, output, cols, BLOCK=BLOCK)
import triton
import triton.language as tl

@triton.jit
def _read(x, row, cols, BLOCK: tl.constexpr):
    col = tl.arange(0, BLOCK)
    return tl.load(x + row * cols + col, mask=col < cols, other=-float("inf")).to(tl.float32)

@triton.jit
def stats(x, sums, tops, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    v = _read(x, row, cols, BLOCK)
    top = tl.max(v, 0)
    tl.store(tops + row, top)
    tl.store(sums + row, tl.sum(tl.exp(v - top), 0))

@triton.jit
def scale(x, sums, tops, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    v = _read(x, row, cols, BLOCK)
    tl.store(y + row * cols + col, tl.exp(v - tl.load(tops + row)) / tl.load(sums + row), mask=col < cols)
