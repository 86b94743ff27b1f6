#!/usr/bin/env python3
"""extract_flow.py - kernels taken out of packages: each case of tests/cases/extract is a package, and what is made of it.

usage: as flow.py.  KL_UPDATE_CASES=1 rewrites what is expected.  Needs no Triton and no GPU, except where a case says so.

A case has a line that says what it shows, the files of the package (`--- PATH`), command lines without `kernel extract`
(`--- lines`), which of the answer's lines count by their beginnings (`--- only`, all where it is left out), what it needs
(`--- needs`), and the answers.  SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import flow

CASES = pathlib.Path(__file__).resolve().parent.parent / "cases/extract"


def has(module):
    python = module == "triton" and os.environ.get("KLINEAGE_PYTHON") or "python3"
    return subprocess.run([python, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec('{module}'))"]).returncode == 0


def sections(text):
    parts = re.split(r"^--- (.+)\n", text, flags=re.M)
    return parts[0], dict(zip(parts[1::2], parts[2::2]))


def unpacked(p, parts):
    for name, text in parts.items():
        if "." in name:
            path = p.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def answer_of(p, line, only, python):
    said = p.run("kernel", "extract", *line.split(), env=python)
    assert "Traceback" not in str(said), str(said)
    text = (said.out or said.err).replace(f"{p.folder}/", "")
    if line.endswith("--json"):
        document = json.loads(text)
        text = f"{sorted(document)}\n"
    if only and not said.status:
        text = "".join(l for l in text.splitlines(True) if l.startswith(only))
    return f"$ {line}\n" + (f"status {said.status}: " if said.status else "") + text.rstrip("\n") + "\n"


def check(p, name):
    path = CASES / f"{name}.case"
    text = path.read_text()
    head, expected = text.split("--- expect\n") if "--- expect\n" in text else (text, "")
    _, parts = sections(head)
    for module in parts.get("needs", "").split():
        if not has(module):
            raise flow.Skip(f"no {module} package: python3 -m pip install {module}")
    unpacked(p, parts)
    only = tuple(parts.get("only", "").rstrip("\n").split("|")) if "only" in parts else None
    python = {} if "triton" in parts.get("needs", "") else {"KLINEAGE_PYTHON": ""}    # nothing of what is installed there
    answers = "".join(answer_of(p, line, only, python) for line in parts["lines"].splitlines())
    if os.environ.get("KL_UPDATE_CASES"):
        path.write_text(f"{head}--- expect\n{answers}")
    else:
        assert answers == expected, f"{path}: KL_UPDATE_CASES=1 rewrites it\n{answers}"


def test_slice(p):
    check(p, "slice")


def test_choices(p):
    check(p, "choices")


def test_tables(p):
    check(p, "tables")


def test_launch(p):
    check(p, "launch")


def test_descriptors(p):
    check(p, "descriptors")


def test_refused(p):
    check(p, "refused")


def test_bombs(p):
    check(p, "bombs")


SOFTMAX = '''import torch
import triton
import triton.language as tl
from triton.language import exp2 as power

LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def spread(v):
    return power((v - tl.max(v, 0)) * LOG2E)


@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (8, 4)], key=["n"])
@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def rows(y, x, stride, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = spread(v)
    tl.store(y + tl.program_id(0) * stride + at, e / tl.sum(e, 0), mask=at < n)


def softmax(x):
    y = torch.empty_like(x)
    rows[(x.shape[0],)](y, x, x.stride(0), x.shape[1])
    return y
'''


def test_what_comes_out_compiles_and_is_judged(p):
    if not has("triton"):
        raise flow.Skip("no triton package: python3 -m pip install triton, or name a Python that has it in KLINEAGE_PYTHON")
    (p.folder / "library").mkdir()
    p.write("library/rows.py", SOFTMAX)
    p.run("kernel", "extract", "library/rows.py:rows", "--task", "softmax", "--out", "mine.py").is_("ok")
    made = p.run("kernel", "compile", "mine.py", "--task", "softmax", "--arch", "sm_90a", "--json").is_("ok").json()
    assert made["plan"]["launches"][0]["block"] == [256, 1, 1], made    # the first configuration
    p.run("gate", "softmax", "mine.py", "--spool", "spool", "--arch", "sm_90a", "--no-journal", limit=250).is_("pending")


def test_out_is_a_file_that_parses(p):
    _, parts = sections((CASES / "launch.case").read_text())
    unpacked(p, parts)
    file = p.folder / "mine.py"
    p.run("kernel", "extract", "norms.py:short", "--task", "rmsnorm", "--out", file).is_("ok", "is the kernel file", "by its place")
    p.run("kernel", "show", file, "--task", "rmsnorm", "--workload", "rows=8,hidden=640").is_("ok", "launch    short", "scratch rstd, 32 bytes")
    p.run("kernel", "show", file, "--task", "rmsnorm", "--workload", "rows=8,hidden=4096").is_("usage", "hidden <= 1024")
    p.run("kernel", "extract", "norms.py:short", "--out", p.folder / "no/such/place").is_("usage", "no/such/place")
    p.run("kernel", "extract", "norms.py:short", "--task", "rmsnrm").is_("usage", "did you mean rmsnorm?")


def test_without_python(p):
    p.run("kernel", "extract", "norms.py:short", env={"KLINEAGE_PYTHON": "/nothing/python3"}).is_("no_device", "KLINEAGE_PYTHON")


def main():
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
