#!/usr/bin/env python3
"""Peers on a GPU: a process that times pairs of kernels as it is asked on stdin, one JSON object a line.

    {"tool": "do_bench" | "kernelbench", "kernel": PATH, "axes": "N=262144", "effort": 100}

do_bench times one kernel and then the other, `effort` milliseconds each (its `rep`).  kernelbench is KernelBench's own
eval_kernel_against_ref from KERNELBENCH/src (5 correctness trials, `effort` performance trials; 5 and 100 are what its
eval_from_generations.py sets): the reference is one instance of the kernel, the candidate another.  Its means are
taken before they are rounded to three digits.  Answers with the samples of both in milliseconds, and seconds."""
import contextlib
import io
import json
import os
import sys
import time
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import dobench
import torch

MODEL = """
import torch
from dobench import Kernel, axes_of
class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = Kernel({path!r}, axes_of({axes!r}))
    def forward(self, x, y):
        return self.kernel(x, y)
def get_inputs():
    return Kernel({path!r}, axes_of({axes!r})).inputs("cpu")
def get_init_inputs():
    return []
"""


def do_bench(question):
    kernels = [dobench.Kernel(question["kernel"], dobench.axes_of(question["axes"])) for _ in range(2)]
    inputs = kernels[0].inputs()
    start = time.perf_counter()
    samples = [dobench.samples_ms(kernel, inputs, question["effort"]) for kernel in kernels]
    return samples, time.perf_counter() - start


def kernelbench_modules():
    """KernelBench's evaluation without its clients of language models, which eval imports and never calls."""
    for name, members in (("openai", ["OpenAI"]), ("litellm", ["completion"])):
        absent = types.ModuleType(name)
        absent.__dict__.update(dict.fromkeys(members))
        sys.modules.setdefault(name, absent)
    sys.path.insert(0, os.environ["KERNELBENCH"] + "/src")
    from kernelbench import eval as evaluation, timing
    return evaluation, timing


def kernelbench(question):
    evaluation, timing = kernelbench_modules()
    samples, stats = [], timing.get_timing_stats

    def keep(elapsed, device=None):
        samples.append(elapsed)
        return stats(elapsed, device=device)

    sources = [MODEL.format(name=name, path=question["kernel"], axes=question["axes"]) for name in ("Model", "ModelNew")]
    precision = torch.float32 if "saxpy" in question["kernel"] else torch.bfloat16
    timing.get_timing_stats = keep
    try:
        start = time.perf_counter()
        found = evaluation.eval_kernel_against_ref(*sources, num_correct_trials=5, num_perf_trials=question["effort"], measure_performance=True,
                                                   device=torch.device("cuda:0"), precision=precision)
        seconds = time.perf_counter() - start
    finally:
        timing.get_timing_stats = stats
    if not (found and found.correctness and len(samples) == 2):
        raise RuntimeError(f"KernelBench: {found.metadata if found else 'no result'}")
    return samples, seconds  # the candidate's first


def main():
    tools = {"do_bench": do_bench, "kernelbench": kernelbench}
    for line in sys.stdin:
        question, said = json.loads(line), io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                samples, seconds = tools[question["tool"]](question)
            answer = {"samples": samples, "seconds": seconds}
        except Exception as error:  # a peer's trouble is a row of the table, not an end
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
