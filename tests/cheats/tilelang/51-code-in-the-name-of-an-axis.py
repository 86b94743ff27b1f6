# A size whose name goes on as code: names of sizes are written into the kernel's signature as they are.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: expect no_compile
#: args --baseline none
#! surface tilelang
#! launch saxpy args(a, x, y, out)
import tilelang.language as T

N = T.dynamic("N){}__device__/**/int/**/state;void/**/g(int/**/x")


def saxpy(BLOCK=256):
    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N,), "float32"), y: T.Tensor((N,), "float32"),
             out: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, BLOCK), threads=BLOCK) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N:
                    out[block * BLOCK + i] = a * x[block * BLOCK + i] + y[block * BLOCK + i]

    return main
