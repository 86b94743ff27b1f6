"""torch.py - NOT PyTorch: what runner_script.py needs of it to bring, draw and read inputs, on host memory, beside fake_cuda.c.

Streams, events and graphs are not here: nothing can be timed with it.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import math

__version__ = "fake"
BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1}
globals().update({name: name for name in BYTES})


class Tensor:
    def __init__(self, memory, shape, dtype):
        self.memory, self.shape, self.dtype = memory, tuple(shape), dtype

    def numel(self):
        return math.prod(self.shape)

    def data_ptr(self):
        return ctypes.addressof(self.memory)

    def reshape(self, *shape):
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        return Tensor(self.memory, (self.numel(),) if shape == (-1,) else shape, self.dtype)

    def __getitem__(self, part):
        """Of bytes, a copy."""
        first, last, _ = part.indices(self.numel())
        return empty((last - first,), self.dtype).copy_(Tensor((ctypes.c_char * (last - first)).from_buffer(self.memory, first), (last - first,), self.dtype))

    def view(self, dtype):
        return Tensor(self.memory, (self.numel() * BYTES[self.dtype] // BYTES[dtype],), dtype)

    def to(self, _device_or_dtype, copy=False):
        return empty(self.shape, self.dtype).copy_(self) if copy else self

    def copy_(self, source):
        ctypes.memmove(self.data_ptr(), source.data_ptr(), self.numel() * BYTES[self.dtype])
        return self


def empty(shape, dtype, device=None, pin_memory=False):
    shape = shape if isinstance(shape, tuple) else (shape,)
    return Tensor((ctypes.c_char * max(1, math.prod(shape) * BYTES[dtype]))(), shape, dtype)


def zeros(shape, device=None):
    return empty(shape, float32)


def frombuffer(pages, dtype, count, offset):
    try:
        memory = (ctypes.c_char * count).from_buffer(pages, offset)
    except TypeError:  # read-only
        memory = (ctypes.c_char * count).from_buffer_copy(pages, offset)
    return Tensor(memory, (count,), dtype)


def as_tensor(value):
    return value


def equal(a, b):
    return a.shape == b.shape and ctypes.string_at(a.data_ptr(), a.numel()) == ctypes.string_at(b.data_ptr(), b.numel())


def set_num_threads(_n):
    pass


class no_grad:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


class version:
    cuda = "fake"


class cuda:
    multi_processor_count, cuda_stream = 2, 0

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def init():
        pass

    @staticmethod
    def synchronize():
        pass

    @staticmethod
    def mem_get_info():
        return 1, 4

    @staticmethod
    def empty_cache():
        pass

    @staticmethod
    def get_device_name(_ordinal):
        return "host memory"

    @classmethod
    def get_device_properties(cls, _ordinal):
        return cls

    @classmethod
    def current_stream(cls):
        return cls
