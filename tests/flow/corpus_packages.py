"""corpus_packages.py - small packages written for corpus_flow.py: what becomes a task, and each kind that must not.

SPDX-License-Identifier: Apache-2.0
"""

MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy of this software\n"
GPL = "GNU GENERAL PUBLIC LICENSE\nVersion 3, 29 June 2007\n"

GOOD = {
    "LICENSE": MIT,
    "__init__.py": "from .norm import ScaledNorm\nopen({marker!r}, 'w').write('imported')\n",
    "norm.py": '''
import torch
from torch import nn
from . import helpers
from .helpers import spread as rms, twice
from .names import *


class Gate(nn.Module):
    """A gate beside a value."""

    def __init__(self, dim: int, hidden_dim: int = None):
        super().__init__()
        self.a = nn.Linear(dim, hidden_dim or dim)
        self.b = nn.Linear(dim, hidden_dim or dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x) * torch.sigmoid(self.b(x)) + OFFSET


class ScaledNorm(nn.Module):
    """Root mean square over the last axis, with a weight."""

    def __init__(self, dim: int, eps: float = 1e-6, drop: float = 0.1):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(dim)), eps
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        return self.drop(x * torch.rsqrt(rms(x) + self.eps) * self.weight * helpers.HALF)


def softened(x: torch.Tensor, top: float = 4.0) -> torch.Tensor:
    return twice(torch.tanh(x / top)) * top
''',
    "names.py": "OFFSET = 0.25\n",
    "helpers.py": '''
import math
HALF = 1 / math.sqrt(4)


def spread(x):
    return (x * x).mean(-1, keepdim=True)


def twice(x):
    return x + x
''',
}

COPIES = {
    "LICENSE": MIT,
    "copies.py": '''
import torch


def softly(values, roof=4.0):
    return doubled(torch.tanh(values / roof)) * roof


def doubled(v):
    return v + v


def row_peaks(x):
    """Held out by its operator."""
    print("what a candidate prints", flush=True)
    return torch.softmax(x, -1) * 3.0
''',
}

# name: (text, where it ends, what must be said); {outside} is a file that must not come to be
BAD = {
    "RunsAtImport": ('''
TABLE = [i for i in range(9)]
for i in range(3):
    LOOPED = i * 2


class RunsAtImport(torch.nn.Module):
    def forward(self, x):
        return x * LOOPED
''', "closed", "code that runs at import"),
    "CallsAtImport": ('''
WEIGHT = make_weight()


def make_weight():
    return 3.0


class CallsAtImport(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * WEIGHT
''', "closed", "code that runs at import"),
    "NeedsWeights": ('''
class NeedsWeights(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.load("weights.pt"))

    def forward(self, x):
        return x * self.w
''', "closed", "needs weights or files"),
    "OpensFiles": ('''
class OpensFiles(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * len(open("/etc/hostname").read())
''', "closed", "opens files"),
    "AsksTheSystem": ('''
import os


class AsksTheSystem(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * float(os.environ.get("SCALE", "1"))
''', "closed", "asks the system"),
    "OtherPackage": ('''
import nowhere_to_be_found as other


def other_package(x):
    return torch.relu(other.scaled(x))
''', "closed", "needs another package"),
    "KeepsState": ('''
COUNT = 0


def keeps_state(x):
    global COUNT
    COUNT += 1
    return torch.relu(x) + COUNT
''', "closed", "keeps state between calls"),
    "DrawsNumbers": ('''
def draws_numbers(x):
    return torch.relu(x) + torch.rand_like(x)
''', "runs", "draws random numbers"),
    "NotFinite": ('''
def not_finite(x):
    return torch.log(-torch.abs(x) - 1.0)
''', "runs", "not finite"),
    "ReturnsItsInput": ('''
def returns_its_input(x: torch.Tensor):
    return torch.Tensor.contiguous(x)
''', "runs", "returns its input"),
    "TakesAPath": ('''
def takes_a_reader(x, reader):
    return torch.relu(x) * reader.scale_of_all
''', "runs", "no inputs were found"),
    "Forges": ('''
def forges(x):
    for fd in range(3, 30):
        try:
            torch.serialization.os.write(fd, b'{"stage": "imported", "reason": null, "notes": []}')
        except OSError:
            pass
    return torch.relu(x)
''', "runs", "answers for itself"),
    "Claims": ('''
def claims(x):
    for fd in range(3, 30):
        try:
            torch.serialization.os.write(fd, b'{"stage": "imported", "reason": null, "notes": []}')
        except OSError:
            pass
    torch.serialization.os._exit(0)
    return torch.relu(x)
''', "runs", "answers for itself"),
    "Endless": ('''
def endless(x):
    while torch.ones(1) > 0:
        pass
    return torch.relu(x)
''', "runs", "not done in time"),
    "Writes": ('''
def writes(x):
    getattr(torch, "sa" + "ve")(x, {outside!r})
    return torch.relu(x)
''', "runs", "no inputs were found"),
}


def bad_package(outside):
    """All of BAD, a file each, and one that is no Python."""
    files = {"LICENSE": MIT, "broken.py": "def broken(:\n"}
    for name, (text, _, _) in BAD.items():
        files[f"{name.lower()}.py"] = "import torch\n" + text.replace("{outside!r}", repr(str(outside)))
    return files
