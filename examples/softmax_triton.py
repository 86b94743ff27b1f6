"""Softmax in Triton, as it stands in many a repository: a kernel, and a wrapper that launches it.

klineage kernel extract examples/softmax_triton.py:softmax_kernel --task softmax --out mine.py
SPDX-License-Identifier: Apache-2.0
"""
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n_cols
    values = tl.load(x_ptr + row * row_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y_ptr + row * row_stride + offsets, powers / tl.sum(powers, axis=0), mask=mask)


def softmax(x):
    y = torch.empty_like(x)
    rows, cols = x.shape
    softmax_kernel[(rows,)](x, y, x.stride(0), cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y
