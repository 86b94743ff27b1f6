#!/usr/bin/env python3
"""Vendor libraries measured through the gate at the tasks' own shapes.

    bench/vendors.py [--surface c|cuda] [--bin build/bin/klineage] [--tasks gemm,conv2d,...] [--out verdicts/]

Runs `klineage gate TASK naive --baseline all --json` for every task and keeps each baseline's median.  With --out the verdicts
themselves are written there, one file a task: they are the evidence behind the table.  Prints one JSON object."""
import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAIVE = {"c": "naive.c", "opencl": "naive.cl", "cuda": "naive.cu"}


def gate(options, task):
    command = [options.bin, "gate", f"tasks/{task}", f"tasks/{task}/{NAIVE[options.surface]}", "--baseline", "all", "--no-journal", "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        print(f"{task}: exit {done.returncode}: {done.stderr.strip()}", file=sys.stderr, flush=True)
        return None


def row_of(verdict):
    row = {"outcome": verdict["outcome"], "why": verdict["why"], "workload": verdict["workload"], "platform": verdict["platform"]["name"],
           "device": verdict["platform"]["device"], "created": verdict["created"], "seconds": verdict["total_ns"] * 1e-9, "baselines": {}}
    time = verdict["time"]
    if time:
        row |= {"naive_us": time["median_ns"] / 1e3, "method": time["method"], "cache": time["cache"]}
        for versus in time["vs"]:
            row["baselines"][versus["baseline"]] = {"us": versus["baseline_ns"] / 1e3, "described": versus["described"], "ratio": versus["ratio"],
                                                    "low": versus["low"], "high": versus["high"], "floor": versus["floor"], "pairs": versus["pairs"]}
    row["unavailable"] = [d for d in verdict["degradations"] if d.startswith("baseline")]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surface", choices=NAIVE, default="c")
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--tasks", default=",".join(sorted(p.parent.name for p in ROOT.glob("tasks/*/definition.json"))))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = {}
    for task in options.tasks.split(","):
        verdict = gate(options, task)
        if not verdict:
            continue
        rows[task] = row_of(verdict)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{task}.{options.surface}.json").write_text(json.dumps(verdict, indent=1) + "\n")
        print(f"{task}: {json.dumps(rows[task])}", file=sys.stderr, flush=True)
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
