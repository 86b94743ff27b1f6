# A kernel in Gluon, with a layout and assembly of its own.
# SPDX-License-Identifier: Apache-2.0
#: task softmax
#: control
#: args --baseline none
#! surface triton
#! let BLOCK = pow2(cols)
#! launch softmax grid(rows) warps(4) args(x, output, cols, BLOCK=BLOCK)
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def scaled(v, factor):
    return gl.inline_asm_elementwise("mul.f32 $0, $1, $2;", "=f,f,f", [v, gl.full_like(v, factor)], gl.float32, True, 1)


@gluon.jit
def softmax(x, y, N, BLOCK: gl.constexpr):
    row = gl.program_id(0)
    place: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    col = gl.arange(0, BLOCK, layout=place)
    v = gl.load(x + row * N + col, mask=col < N, other=-float("inf"))
    e = gl.exp2(scaled(v - gl.max(v, 0), 1.4426950408889634))
    gl.store(y + row * N + col, e / gl.sum(e, 0), mask=col < N)
