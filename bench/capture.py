#!/usr/bin/env python3
"""Calls of PyTorch, captured on a GPU host and raced by the gate against the expert kernels of the same tasks.

    bench/capture.py [CASE...] [--bin build/bin/klineage] [--out FOLDER] [--seconds N] [--json FILE]

Needs a GPU, its driver, and a Python with PyTorch in $KLINEAGE_PYTHON.  For each case the program runs alone and says what its
call takes by its own clock; then it runs captured.  Of its launches the one is bound that ran as often as the call, by the
addresses that the program prints, and the gate takes the task's expert beside it: that checks the captured code at this shape,
without PyTorch.  A convolution's filter is a task's HWCF for us and KRSC for cuDNN, so its case has a task and an expert of that
layout, made here of the repository's by the edits below.  Says of each step whether it worked, and prints one JSON object.
SPDX-License-Identifier: Apache-2.0"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMES = 20
PROGRAM = """
import statistics, sys
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

def normal(*shape):
    return torch.randn(*shape, device="cuda", dtype=TYPE)

def per_call(call, flush):
    took = []
    for _ in range(50):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(); call(); end.record()
        torch.cuda.synchronize()
        took.append(begin.elapsed_time(end) * 1e6)
    return statistics.median(took)

def in_a_graph(call):
    graph, took = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        kept = [call() for _ in range(TIMES)]
    for _ in range(20):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(); graph.replay(); end.record()
        torch.cuda.synchronize()
        took.append(begin.elapsed_time(end) * 1e6 / TIMES)
    return statistics.median(took)

CALL
first = call()
for _ in range(TIMES - 1):
    call()
torch.cuda.synchronize()
tensors["RESULT"] = first
if len(sys.argv) > 1:
    print("per call", per_call(call, torch.empty(1 << 28, dtype=torch.uint8, device="cuda")))
    print("in a graph", in_a_graph(call))
print("torch", torch.__version__, "on", torch.cuda.get_device_name())
for name, t in tensors.items():
    print("at", name, hex(t.data_ptr()))
"""

MATMUL = """
x, weight = normal(4096, 4096), normal(4096, 4096)
tensors = {"x": x, "weight": weight}
call = lambda: torch.matmul(x, weight.T)
"""
ATTENTION = """
q, k, v = (normal(8 * 2048, 64, 128) for _ in range(3))
tensors = {"q": q, "k": k, "v": v}
views = [t.view(8, 2048, 64, 128).transpose(1, 2) for t in (q, k, v)]
def call():
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
        return F.scaled_dot_product_attention(*views)
"""
CONV2D = """
torch.backends.cudnn.benchmark = True
x, weight = normal(8, 56, 56, 64), normal(128, 3, 3, 64)
tensors = {"x": x, "weight": weight}
call = lambda: F.conv2d(x.permute(0, 3, 1, 2), weight.permute(0, 3, 1, 2), padding=1)
"""
CASES = {
    "matmul": {"call": MATMUL, "type": "torch.bfloat16", "task": "gemm", "workload": "paper", "expert": "experts/gemm/cuda/13-expert.cu", "result": "y"},
    "attention": {"call": ATTENTION, "type": "torch.float16", "task": "fmha", "workload": "paper", "expert": "experts/fmha/cuda/10-expert.cu",
                  "result": "output"},
    "conv2d": {"call": CONV2D, "type": "torch.float16", "task": "conv2d", "workload": "paper", "expert": "experts/conv2d/cuda/8-expert.cu", "result": "y"},
}

# ---- a task with cuDNN's filter -----------------------------------------------------------------------------------------------------

HWCF, KRSC = "(((size_t)r * S + s) * C + c) * F + f", "(((size_t)f * R + r) * S + s) * C + c"
EXPERT_EDITS = (    # the filter's rows are channels then, so that the second operand is not transposed
    ("//! tensormap tw: weight box(64, 64, 1) swizzle(128)", "//! tensormap tw: weight box(64, 1, 64) dims(C, R * S, F) strides(C, R * S * C) swizzle(128)"),
    ('"r"(filter), "r"(0), "r"(tap)', '"r"(0), "r"(tap), "r"(filter)'),
    ("(uint64_t)(8192 >> 4) << 16", "(uint64_t)1 << 16"),
    ("p, 1, 1, 0, 1;", "p, 1, 1, 0, 0;"),
    ("b + i * 128,", "b + i * 2,"),
)


def edited(text, edits):
    for old, new in edits:
        if text.count(old) != 1:
            raise SystemExit(f"these words are {text.count(old)} times where an edit wants them once: {old}")
        text = text.replace(old, new)
    return text


def with_cudnn_filter(folder):
    """(task, expert) in `folder`."""
    task = folder / "conv2d_krsc"
    task.mkdir(parents=True, exist_ok=True)
    definition = json.loads((ROOT / "tasks/conv2d/definition.json").read_text())
    definition.update(name="conv2d_krsc", description="As conv2d, with a KRSC filter.")
    definition["inputs"]["weight"]["shape"] = ["F", "R", "S", "C"]
    definition["reference"] = definition["reference"].replace("weight.permute(3, 2, 0, 1)", "weight.permute(0, 3, 1, 2)")
    definition["klineage"]["baselines"] = []
    (task / "definition.json").write_text(json.dumps(definition))
    lines = [json.loads(line) for line in (ROOT / "tasks/conv2d/workloads.jsonl").read_text().splitlines()]
    (task / "workloads.jsonl").write_text("".join(json.dumps(o) + "\n" for o in lines if o["klineage"]["on"] == "gpu"))
    for name in ("oracle.cu", "naive.cu"):
        (task / name).write_text(edited((ROOT / "tasks/conv2d" / name).read_text(), [(HWCF, KRSC)]))
    expert = folder / "conv2d_krsc.cu"
    expert.write_text(edited((ROOT / "experts/conv2d/cuda/8-expert.cu").read_text(), EXPERT_EDITS))
    return task, expert


# ---- steps --------------------------------------------------------------------------------------------------------------------------


class Failed(Exception):
    pass


def run(options, words):
    left = options.end - time.monotonic()
    if left < 5:
        raise Failed("no time is left")
    try:
        return subprocess.run([str(w) for w in words], capture_output=True, text=True, cwd=ROOT, timeout=left)
    except subprocess.TimeoutExpired:
        raise Failed(f"not within {options.seconds} s: {' '.join(map(str, words[:3]))}") from None


def step(name, done):
    print(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {name}", file=sys.stderr, flush=True)
    if done.returncode:
        raise Failed(f"{name}: exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-1500:]}")
    return done.stdout


def said(output):
    """What the program printed: its own times in ns, addresses of tensors, versions."""
    times = {key.replace(" ", "_"): float(value) for key, value in re.findall(r"^(per call|in a graph) ([0-9.]+)$", output, re.M)}
    return times, dict(re.findall(r"^at (\w+) (0x[0-9a-f]+)$", output, re.M)), re.findall(r"^torch .*$", output, re.M)


def shown(launch):
    """A launch in short: enough to bind it by hand."""
    places = [(f"{i}@{o['at']}", kind, hex(o["address"]), o["bytes"] - o["offset"]) for i, p in enumerate(launch["parameters"])
              for kind in ("pointers", "maps") for o in p[kind]]
    keep = ("launch", "count", "called", "grid", "block", "cluster", "shared", "cooperative", "cubin", "entry", "why")
    return {key: launch.get(key) for key in keep} | {"bytes": [p["bytes"] for p in launch["parameters"]], "places": places}


def addresses_of(launch):
    return {hex(o["address"]) for p in launch["parameters"] for kind in ("pointers", "maps") for o in p[kind]}


def gate(options, case, *more):
    done = run(options, [options.bin, "gate", case["task"], case["expert"], "--workload", case["workload"], "--no-journal", "--json", "-q", *more])
    try:
        verdict = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise Failed(done.stderr.strip()[-1500:]) from None
    return {key: verdict[key] for key in ("outcome", "why", "time", "platform", "degradations", "receipt") if key in verdict}


def race(options, case, launch, addresses, folder):
    file = folder / "captured.cu"
    args = ",".join(f"{name}={at}" for name, at in addresses.items()) + ",zero=rest"
    step(f"launch {launch['launch']} is bound", run(options, [
        options.bin, "capture", folder / "kept", "--launch", launch["launch"], "--task", case["task"], "--workload", case["workload"], "--args", args,
        "--out", file]))
    return {"launch": launch["launch"], "kernel_file": file.read_text()[:6000], "verdict": gate(options, case, "--against", file)}


def measure(options, name, case):
    folder = options.out / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if name == "conv2d":
        task, expert = with_cudnn_filter(folder)
        case = case | {"task": task, "expert": expert}
    result = {"case": name, "launches": [], "raced": []}
    program = folder / f"{name}.py"
    program.write_text(PROGRAM.replace("CALL\n", case["call"]).replace("TYPE", case["type"]).replace("TIMES", str(TIMES)).replace("RESULT", case["result"]))
    try:
        alone = step(f"{name} runs alone", run(options, [options.python, program, "timed"]))
        result["own_ns"], _, result["said"] = said(alone)
        kept = step(f"{name} runs captured", run(options, [options.bin, "capture", "--out", folder / "kept", "--json", "--", options.python, program]))
        document = json.loads(kept)
        _, addresses, _ = said(document["output"])
        result.update(seen=document["seen"], addresses=addresses, launches=[shown(o) for o in document["launches"]])
        often = [o for o in document["launches"] if o["count"] >= TIMES and o["cubin"] and addresses[case["result"]] in addresses_of(o)]
        if not often:
            raise Failed("no launch ran as often as the call and writes its result")
        for launch in sorted(often, key=lambda o: o["count"]):
            try:
                result["raced"].append(race(options, case, launch, addresses, folder))
            except Failed as why:
                result["raced"].append({"launch": launch["launch"], "error": str(why)})
        won = [r for r in result["raced"] if r.get("verdict", {}).get("time")]
        if not won:
            raise Failed("no launch could be raced")
        for vs in won[0]["verdict"]["time"]["vs"]:
            print(f"ok     {name}: captured {vs['baseline_ns'] / 1e3:.2f} us, expert {vs['candidate_ns'] / 1e3:.2f} us; PyTorch's own clock "
                  f"{ {k: round(v / 1e3, 2) for k, v in result['own_ns'].items()} } us", file=sys.stderr, flush=True)
        result["ok"] = True
    except Failed as why:
        print(f"FAILED {name}: {why}", file=sys.stderr, flush=True)
        result.update(ok=False, error=str(why))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default=list(CASES), help=f"of {' '.join(CASES)}; all")
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=int, default=900, help="of all cases together")
    parser.add_argument("--json", type=Path, help="the object goes there, and not to the terminal")
    parser.add_argument("--task-only", action="store_true", help="write the task and the expert of case conv2d into --out, and stop")
    options = parser.parse_args()
    options.out = (options.out or Path(tempfile.mkdtemp(prefix="klineage-capture-"))).resolve()
    options.bin = os.path.abspath(options.bin)
    options.end = time.monotonic() + options.seconds
    options.python = os.environ.get("KLINEAGE_PYTHON", "python3")
    if options.task_only:
        print(*with_cudnn_filter(options.out))
        return 0
    results = []
    for name in options.cases:
        results.append(measure(options, name, CASES[name]))
        text = json.dumps({"folder": str(options.out), "cases": results}, indent=1)
        if options.json:
            options.json.write_text(text + "\n")
    if not options.json:
        print(text)
    return 0 if all(r["ok"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
