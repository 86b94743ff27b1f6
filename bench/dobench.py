#!/usr/bin/env python3
"""Median of triton.testing.do_bench for one kernel of bench/aa.py, in this fresh process; prints nanoseconds.

    bench/dobench.py KERNEL.cu AXES        (needs torch, triton and cupy)

The same source, compiled by NVRTC and launched on torch's stream, so that only the method of timing differs from the gate's."""
import functools
import sys
from pathlib import Path

import cupy
import torch
import triton


def axes_of(text):
    return {name: int(value) for name, value in (pair.split("=") for pair in text.split(","))}


class Kernel:
    """saxpy or gemm of bench/aa.py as a function of tensors."""

    def __init__(self, path, axes):
        self.saxpy, self.axes = "saxpy" in str(path), tuple(axes.values())
        self.path = Path(path)

    @functools.cached_property
    def function(self):
        names, kind = (("x", "y", "out"), "float") if self.saxpy else (("x", "weight", "y"), "__nv_bfloat16")
        options = ("-std=c++17", "-I/usr/local/cuda/include", *(f"-Dkl_t_{name}={kind}" for name in names))
        return cupy.RawModule(code=self.path.read_text(), options=options).get_function("saxpy" if self.saxpy else "gemm")

    def inputs(self, device="cuda"):
        if self.saxpy:
            return [torch.randn(self.axes[0], device=device) for _ in range(2)]
        m, n, k = self.axes
        return [torch.randn(shape, device=device, dtype=torch.bfloat16) for shape in ((m, k), (n, k))]

    def output(self, like):
        return torch.empty_like(like) if self.saxpy else torch.empty(self.axes[:2], device=like.device, dtype=like.dtype)

    def __call__(self, x, y, out=None):
        out = self.output(x) if out is None else out
        integers = tuple(cupy.int32(a) for a in self.axes)
        pointers = (x.data_ptr(), y.data_ptr(), out.data_ptr())
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            if self.saxpy:
                self.function(((self.axes[0] + 255) // 256,), (256,), (cupy.float32(1.5), *pointers, *integers))
            else:
                self.function(((self.axes[1] + 15) // 16, (self.axes[0] + 15) // 16), (16, 16), (*pointers, *integers))
        return out


def samples_ms(kernel, inputs, rep=100):
    """Every sample of do_bench; inputs and output stay the same, as do_bench wants it."""
    out = kernel(*inputs)
    return triton.testing.do_bench(lambda: kernel(*inputs, out=out), rep=rep, return_mode="all")


def main():
    kernel = Kernel(sys.argv[1], axes_of(sys.argv[2]))
    inputs = kernel.inputs()
    out = kernel(*inputs)
    torch.cuda.synchronize()
    print(triton.testing.do_bench(lambda: kernel(*inputs, out=out), return_mode="median") * 1e6)


if __name__ == "__main__":
    main()
