"""pytest-benchmark on two kernels, called through ctypes; bench/peers.py says which in PEER_PAIR."""
import ctypes
import json
import os
import random
import time

import pytest

OBJECTS, ELEMENTS, AXES = (json.loads(os.environ["PEER_PAIR"])[key] for key in ("objects", "elements", "axes"))


def drawn(count):
    source = random.Random(1)
    block = [source.gauss(0, 1) for _ in range(1024)]
    return (ctypes.c_float * count)(*(block * (count // 1024 + 1))[:count])


@pytest.mark.parametrize("which", [0, 1])
def test_kernel(benchmark, which):
    run = ctypes.CDLL(OBJECTS[which]).run
    run.restype = None
    operands = [drawn(count) for count in ELEMENTS] + [(ctypes.c_int32 * len(AXES))(*AXES)]
    start = time.perf_counter()
    benchmark(run, *operands)
    benchmark.extra_info["seconds"] = time.perf_counter() - start
