"""mm as a user of PyTorch writes it.

SPDX-License-Identifier: Apache-2.0
"""
import torch


def run(a, b):
    return {"output": torch.mm(a, b)}


def describe():
    return f"torch {torch.__version__}, mm"
