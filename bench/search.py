#!/usr/bin/env python3
"""Does search work, without a language model and its noise?

    bench/search.py [--tasks gemm,...] [--policies bestofn,...] [--steps 200] [--seeds 1,2,3] [--workload cpu] [--thorough] [--set NAME=VALUE]
                    [--bin build/bin/klineage] [--library library] [--keep FOLDER]

Every policy is driven by --model mutate:SEED, which draws one mechanical variation of a kernel for every request and knows nothing: what a policy
reaches with it is what its search is worth, and the same for all. A task starts from examples/search/TASK-params.c where that is there, else from its
naive kernel. Gates are real, and --quick unless --thorough is given; every search has a journal of its own, so that none profits from another's verdicts.

Prints one JSON object: for each search its proposals, how many different kernels were gated, how many cells of a grid of size and speed the correct
ones fill (`cells`, the coverage), what became of them, the best ratio to the baseline after each proposal that raised it (`curve`), the gain over the start, and what the engine itself takes, apart from gates:
    live        proposals per second of the time that was not spent in the gate (its own clock, waiting for its turn included)
    resumed     proposals per second when the same command runs again, out of the journal, the fastest of three: no gate and no proposer
With --keep the journals stay there. A search of N steps takes about N gates: about a second each at --workload tiny on an idle machine, 5 to 10 s at
cpu, where a slow start is timed against a fast baseline."""
import argparse
import json
import math
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESUMES = 3


def policies():
    return re.findall(r'^    \{"([a-z-]+)",', (ROOT / "src/search/policies.c").read_text(), re.MULTILINE)


def command(options, task, policy, seed, store):
    start = ROOT / f"examples/search/{task}-params.c"
    words = [options.bin, "optimize", str(ROOT / "tasks" / task), "--policy", policy, "--model", f"mutate:{seed}", "--library", options.library,
             "--max-steps", options.steps, "--patience", options.steps, "--store", store, "--json", "-q"]
    words += ["--kernel", start] if start.exists() else []
    words += ["--workload", options.workload] if options.workload else []
    words += [] if options.thorough else ["--quick"]
    words += [word for setting in options.set for word in ("--set", setting)]
    return [str(word) for word in words]


def run(words):
    at = time.monotonic()
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    took = time.monotonic() - at
    try:
        return json.loads(done.stdout), took
    except json.JSONDecodeError:
        sys.exit(f"{' '.join(words)}\nexit status {done.returncode}: {done.stderr.strip()}")


def gate_seconds(options, store):
    journal = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        keys = [key for (key,) in journal.execute("SELECT key FROM verdict")]
    finally:
        journal.close()
    shown = (subprocess.run([options.bin, "verdict", "show", key, "--json", "--store", str(store)], capture_output=True, check=True).stdout for key in keys)
    return sum(json.loads(text).get("total_ns", 0) for text in shown) / 1e9


def steps_of(options, found, store):
    shown = subprocess.run([options.bin, "run", "show", found["run"], "--store", str(store), "--json"], capture_output=True, text=True, cwd=ROOT, check=True)
    return json.loads(shown.stdout)["steps"]


def cells(steps, store):
    """Coverage: places of a grid that a correct kernel was found for, by size (eighths of a doubling of its source) and speed (halves of one)."""
    journal = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        size = {name: length for name, length in journal.execute("SELECT hash, length(text) FROM blob")}
    finally:
        journal.close()
    held = {(round(8 * math.log2(size[s["source"]])), round(2 * math.log2(s["ratio"]))) for s in steps if s["ratio"] > 0 and s["source"] in size}
    return len(held)


def count(words):
    return {word: words.count(word) for word in sorted(set(words))}


def row_of(options, task, policy, seed, store):
    words = command(options, task, policy, seed, store)
    found, wall = run(words)
    track = found["tracks"][0]
    gated = gate_seconds(options, store)
    again = []
    for _ in range(RESUMES):
        same, took = run(words)
        assert same == found, "the same command gave another result"
        again.append(took)
    steps = [s for s in steps_of(options, found, store) if s["parent"]]  # neither the start nor the end
    kernels = [s["kernel"] for s in steps if s["kernel"]]
    proposals = max(track["proposals"], 1)
    return {"task": task, "policy": policy, "seed": seed, "workload": options.workload, "set": options.set, "start_ratio": track["start_ratio"],
            "ratio": track["ratio"], "baseline": track["baseline"], "gain": track["gain"], "gain_ci": track["gain_ci"],
            "stopped": track["stopped"], "proposals": track["proposals"], "gated": track["gated"], "passed": track["passed"],
            "improved": track["improved"], "kernels": len(set(kernels)), "cells": cells(steps, store), "outcomes": count([s["outcome"] for s in steps]),
            "actions": count([s["action"] for s in steps]), "curve": [[n + 1, s["ratio"]] for n, s in enumerate(steps) if s["best"]],
            "wall_s": wall, "gate_s": gated, "live_per_s": proposals / max(wall - gated, 1e-3),
            "resumed_s": min(again), "resumed_per_s": proposals / min(again)}


def show(row):
    print(f"{row['task']}/{row['policy']}/{row['seed']}: {row['start_ratio']:.3f}x -> {row['ratio']:.3f}x {row['baseline']}, gain {row['gain']:.2f}; "
          f"{row['proposals']} proposals, {row['kernels']} kernels in {row['cells']} cells, {row['passed']} passed; {row['wall_s']:.0f} s, of them {row['gate_s']:.0f} in the gate; "
          f"resumed: {row['resumed_per_s']:.0f} proposals/s", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="gemm")
    parser.add_argument("--policies", default=",".join(policies()))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--workload", default="cpu")
    parser.add_argument("--thorough", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--library", default=str(ROOT / "library"))
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="klineage-search-") as scratch:
        folder = (options.keep or pathlib.Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for task in options.tasks.split(","):
            for seed in options.seeds.split(","):
                for policy in options.policies.split(","):
                    rows.append(row_of(options, task, policy, int(seed), folder / f"{task}-{policy}-{seed}.db"))
                    show(rows[-1])
    print(json.dumps({"steps": options.steps, "quick": not options.thorough, "searches": rows}, indent=2))


if __name__ == "__main__":
    main()
