#! surface triton
#! let BLOCK = pow2(cols)
#! launch softmax grid(rows) warps(8) stages(2) args(x, output, cols, BLOCK=BLOCK)
import triton
import triton.language as tl

@triton.jit
def softmax(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + col, mask=col < N, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * N + col, e / tl.sum(e, 0), mask=col < N)
