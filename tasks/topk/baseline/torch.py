"""PyTorch's top-K, unsorted.  SPDX-License-Identifier: Apache-2.0"""
import torch


def run(x, k):
    values, indices = torch.topk(x, k, dim=-1, sorted=False)
    return {"values": values, "indices": indices}


def describe():
    return f"PyTorch {torch.__version__}, torch.topk(sorted=False)"
