# A kernel as it stands in a repository: compiled by a decorator, called by a wrapper, imported beside torch. All of
# that is left out and reported.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: control
#: args --baseline none
#! surface tilelang
#! launch saxpy args(a, x, y, out)
import tilelang
import tilelang.language as T
import torch

N = T.dynamic("N")


def main():
    kernel = saxpy()
    print(kernel(2.0, torch.ones(8), torch.ones(8)))


@tilelang.jit(out_idx=[-1])
def saxpy(BLOCK=256):
    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N,), "float32"), y: T.Tensor((N,), "float32"),
             out: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, BLOCK), threads=BLOCK) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N:
                    out[block * BLOCK + i] = a * x[block * BLOCK + i] + y[block * BLOCK + i]

    return main
