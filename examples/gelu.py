"""A function of PyTorch that becomes a task: its text, and one call that shows what it takes.

klineage task import examples/gelu.py:scaled_gelu --out gelu
SPDX-License-Identifier: Apache-2.0
"""
import torch


def scaled_gelu(x, scale):
    return torch.nn.functional.gelu(x) * scale


def example_inputs():
    return torch.randn(512, 1024), torch.rand(1024)
