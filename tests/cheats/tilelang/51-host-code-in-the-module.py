# Code of the module, a wrapper and decorators: left out and reported, never run; the kernel itself is honest.
# SPDX-License-Identifier: Apache-2.0
#: task saxpy
#: harmless
#: expect pass
#: args --baseline none
#! surface tilelang
#! launch saxpy args(a, x, y, out)
import os

import tilelang
import tilelang.language as T
import torch

N = T.dynamic("N")
os.system("id > /tmp/owned")
print(open("/etc/passwd").read())


def run(a, x, y):
    return saxpy()(a, x, y)


@tilelang.autotune(configs=[{"BLOCK": 512}])
@tilelang.jit(out_idx=[-1], pass_configs={"tl.disable_data_race_check": True})
def saxpy(BLOCK=256):
    @T.prim_func
    def main(a: T.float32, x: T.Tensor((N,), "float32"), y: T.Tensor((N,), "float32"),
             out: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, BLOCK), threads=BLOCK) as block:
            for i in T.Parallel(BLOCK):
                if block * BLOCK + i < N:
                    out[block * BLOCK + i] = a * x[block * BLOCK + i] + y[block * BLOCK + i]

    return main
