# Assembly that ends the kernel and begins another, by Gluon's name for it.
# SPDX-License-Identifier: Apache-2.0
#: task softmax
#: expect no_compile
#: args --baseline none
#! surface triton
#! let BLOCK = pow2(cols)
#! launch softmax grid(rows) warps(4) args(x, output, cols, BLOCK=BLOCK)
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def scaled(v, factor):
    return gluon.language.inline_asm_elementwise("mul.f32 $0, $1, $2; ret; } .visible .entry another() { ret;", "=f,f,f", [v, factor + v * 0], gl.float32, True, 1)


@gluon.jit
def softmax(x, y, N, BLOCK: gl.constexpr):
    row = gl.program_id(0)
    place: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    col = gl.arange(0, BLOCK, layout=place)
    v = gl.load(x + row * N + col, mask=col < N, other=-float("inf"))
    e = gl.exp2(scaled(v - gl.max(v, 0), 1.4426950408889634))
    gl.store(y + row * N + col, e / gl.sum(e, 0), mask=col < N)
