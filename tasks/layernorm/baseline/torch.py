"""layernorm as a user of PyTorch writes it.

SPDX-License-Identifier: Apache-2.0
"""
import torch
import torch.nn.functional as F


def run(x, weight, bias, eps):
    return {"output": F.layer_norm(x, (x.shape[-1],), weight, bias, eps)}


def describe():
    return f"torch {torch.__version__}, layer_norm"
