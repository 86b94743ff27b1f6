#!/usr/bin/env python3
"""Median of triton.testing.do_bench for one kernel of bench/aa.py, in this fresh process; prints nanoseconds.

    bench/dobench.py KERNEL.cu AXES        (needs torch, triton and cupy)

The same source, compiled by NVRTC and launched on torch's stream, so that only the method of timing differs from the gate's."""
import sys
from pathlib import Path

import cupy
import torch
import triton


def axes_of(text):
    return {name: int(value) for name, value in (pair.split("=") for pair in text.split(","))}


def launcher(path, axes):
    """A function that launches the kernel once on fresh random inputs."""
    source = Path(path).read_text()
    if "saxpy" in path:
        n = axes["N"]
        x, y, out = torch.randn(n, device="cuda"), torch.randn(n, device="cuda"), torch.empty(n, device="cuda")
        defines = ("-Dkl_t_x=float", "-Dkl_t_y=float", "-Dkl_t_out=float")
        name, grid, block = "saxpy", ((n + 255) // 256,), (256,)
        arguments = (cupy.float32(1.5), x.data_ptr(), y.data_ptr(), out.data_ptr(), cupy.int32(n))
        keep = (x, y, out)
    else:
        m, n, k = axes["M"], axes["N"], axes["K"]
        x, w = (torch.randn(s, device="cuda", dtype=torch.bfloat16) for s in ((m, k), (n, k)))
        y = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        defines = ("-Dkl_t_x=__nv_bfloat16", "-Dkl_t_weight=__nv_bfloat16", "-Dkl_t_y=__nv_bfloat16")
        name, grid, block = "gemm", ((n + 15) // 16, (m + 15) // 16), (16, 16)
        arguments = (x.data_ptr(), w.data_ptr(), y.data_ptr(), cupy.int32(m), cupy.int32(n), cupy.int32(k))
        keep = (x, w, y)
    include = "/usr/local/cuda/include"
    kernel = cupy.RawModule(code=source, options=("-std=c++17", f"-I{include}") + defines).get_function(name)
    stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)

    def launch():
        with stream:
            kernel(grid, block, arguments)

    return launch, keep


def main():
    launch, keep = launcher(sys.argv[1], axes_of(sys.argv[2]))
    launch()
    torch.cuda.synchronize()
    print(triton.testing.do_bench(launch, return_mode="median") * 1e6)
    del keep


if __name__ == "__main__":
    main()
