#!/usr/bin/env python3
"""How long does a call take after a device idled, and after so much work?  The table behind "as busy before every call" in docs/gate.md.

    bench/busy.py        on a host with a GPU and PyTorch

For each kernel: rows are the flushes of 2 x L2 before a timed call, columns what was before them: the call before it, queued back to
back, or a wait for the device and 0, 50, 200, 1000 us of idling.  A cell is the median in us of 15 medians of 6 calls, cells in random
order each time.  The flush is the driver's, as in the gate's runners.  SPDX-License-Identifier: Apache-2.0"""
import ctypes
import random
import statistics
import time

import torch
import torch.nn.functional as F

FLUSHES, IDLE_US = (1, 2, 4, 8, 16, 32), (None, 0, 50, 200, 1000)
DRIVER = ctypes.CDLL("libcuda.so.1")


class Flush:
    def __init__(self):
        self.buffer = torch.empty(2 * torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.uint8, device="cuda")
        self.value = 0

    def __call__(self):
        self.value ^= 0xFF
        DRIVER.cuMemsetD8Async(ctypes.c_void_p(self.buffer.data_ptr()), ctypes.c_ubyte(self.value), ctypes.c_size_t(self.buffer.numel()),
                               ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))


def kernels():
    x, w, y = (torch.randn(4096, 4096, device="cuda").bfloat16() for _ in range(3))
    q, k, v = (torch.randn(2, 16, 2048, 128, device="cuda").half() for _ in range(3))
    rows, copied = (torch.randn(16384, 4096, device="cuda").bfloat16() for _ in range(2))
    part = slice(2048)
    return {"gemm4096": lambda: torch.matmul(x, w.T, out=y), "gemm2048": lambda: torch.matmul(x[part, part], w[part, part].T, out=y[part, part]),
            "sdpa": lambda: F.scaled_dot_product_attention(q, k, v), "copy": lambda: copied.copy_(rows)}


def idle(us):
    torch.cuda.synchronize()
    end = time.perf_counter_ns() + us * 1000
    while time.perf_counter_ns() < end:
        pass


def timed(call, flush, flushes, idle_us):
    if idle_us is not None:
        idle(idle_us)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(flushes):
        flush()
    first.record()
    call()
    last.record()
    return first, last


def sample(call, flush, cell):
    for _ in range(2):
        call()
    torch.cuda.synchronize()
    pairs = [timed(call, flush, *cell) for _ in range(6)]
    torch.cuda.synchronize()
    return statistics.median(first.elapsed_time(last) * 1e3 for first, last in pairs)


def main():
    torch.manual_seed(1)
    flush = Flush()
    for name, call in kernels().items():
        for _ in range(20):
            call()
        cells = [(n, us) for n in FLUSHES for us in IDLE_US]
        found = {cell: [] for cell in cells}
        for _ in range(15):
            random.shuffle(cells)
            for cell in cells:
                found[cell].append(sample(call, flush, cell))
        print(name, "rows: flushes; columns: queued back to back, idle 0, 50, 200, 1000 us after a wait")
        for n in FLUSHES:
            print(f"{n:3d}  " + "  ".join(f"{statistics.median(found[n, us]):8.2f}" for us in IDLE_US), flush=True)


if __name__ == "__main__":
    main()
