"""grouped_mm as a user of PyTorch writes it.

The grouped operator keeps the offsets on the device.  Where it is missing, or a row is not a multiple of 16 bytes,
the groups are multiplied one by one; that reads the offsets back to the host, and `describe` says so.

SPDX-License-Identifier: Apache-2.0
"""
import torch

GROUPED = getattr(torch.nn.functional, "grouped_mm", None) or getattr(torch, "_grouped_mm", None)
path = "not run yet"


def aligned(*tensors):
    return all(t.dtype == torch.bfloat16 and t.shape[-1] % 8 == 0 for t in tensors)


def run(x, weight, offsets):
    global path
    if GROUPED is not None and aligned(x, weight):
        path = "grouped_mm"
        return {"output": GROUPED(x, weight, offs=offsets[1:])}
    path = "one matmul a group"
    output = torch.empty(x.shape[0], weight.shape[2], dtype=x.dtype, device=x.device)
    cuts = offsets.tolist()
    for group in range(weight.shape[0]):
        rows = slice(cuts[group], cuts[group + 1])
        torch.matmul(x[rows], weight[group], out=output[rows])
    return {"output": output}


def describe():
    return f"torch {torch.__version__}, {path}"
