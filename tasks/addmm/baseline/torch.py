"""addmm as a user of PyTorch writes it.

SPDX-License-Identifier: Apache-2.0
"""
import torch


def run(bias, mat1, mat2):
    return {"output": torch.addmm(bias, mat1, mat2)}


def describe():
    return f"torch {torch.__version__}, addmm"
