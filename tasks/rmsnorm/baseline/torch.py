"""rmsnorm as a user of PyTorch writes it.

SPDX-License-Identifier: Apache-2.0
"""
import torch
import torch.nn.functional as F


def run(x, weight, eps):
    return {"output": F.rms_norm(x, (x.shape[-1],), weight, eps)}


def describe():
    return f"torch {torch.__version__}, rms_norm"
