#!/usr/bin/env python3
"""A/A spread: the same kernel compared with itself, in fresh processes.

    bench/aa.py [--surface c|cuda] [--repeats 20] [--bin build/bin/klineage] [--dobench] [--only 3us]

For each of three sizes (about 3 us, 30 us and 1 ms) the gate compares a kernel with itself REPEATS times, each in a fresh process with
fresh inputs on fresh pages.  Spread is (largest - smallest) / median over the repeats, cv their standard deviation over their mean, of
  ratio     what a verdict reports: the median of interleaved pairs
  alone     the same kernel's median time, taken one process after the other, as most harnesses do
  do_bench  with --dobench: triton.testing.do_bench medians of the same source, one fresh process each, alternating with the above
Prints one JSON object.  Nothing here judges; the README quotes it."""
import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAXPY = "tests/data/tasks/saxpy"
CASES = {
    "c": [("3us", SAXPY, "naive.c", "N=16384"), ("30us", SAXPY, "naive.c", "N=163840"), ("1ms", "tasks/gemm", "naive.c", "M=128,N=128,K=128")],
    "cuda": [("3us", SAXPY, "naive.cu", "N=262144"), ("30us", SAXPY, "naive.cu", "N=8388608"), ("1ms", "tasks/gemm", "naive.cu", "M=1024,N=1024,K=1024")],
}


def gate(binary, task, kernel, workload):
    path = str(ROOT / task / kernel)
    command = [binary, "gate", str(ROOT / task), path, "--against", path, "--workload", workload, "--no-journal", "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True)
    try:  # one that did not settle is a row too: `outcomes` says so
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"{' '.join(command)}\n{done.stderr}{done.stdout}")


def dobench(task, kernel, workload):
    command = [sys.executable, str(ROOT / "bench" / "dobench.py"), str(ROOT / task / kernel), workload]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return float(done.stdout)


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


def cv(values):
    return statistics.stdev(values) / statistics.fmean(values)


def measure(options, task, kernel, workload):
    ratios, alone, bench, outcomes, seconds = [], [], [], [], []
    for _ in range(options.repeats):
        verdict = gate(options.bin, task, kernel, workload)
        if not verdict["time"]:
            sys.exit(f"{task}/{kernel}: {verdict['outcome']}: {verdict['why']}")
        versus = verdict["time"]["vs"][0]
        ratios.append(versus["ratio"])
        alone.append(versus["candidate_ns"])
        outcomes.append(verdict["outcome"] + "/" + versus["call"])
        seconds.append(verdict["total_ns"] * 1e-9)
        if options.dobench:
            bench.append(dobench(task, kernel, workload))
    row = {"kernel": f"{task}/{kernel}", "workload": workload, "repeats": options.repeats, "platform": verdict["platform"]["name"],
           "method": verdict["time"]["method"], "median_us": statistics.median(alone) / 1e3, "ratio_spread": spread(ratios), "ratio_cv": cv(ratios),
           "ratio_worst": max(abs(r - 1) for r in ratios), "alone_spread": spread(alone), "seconds_per_verdict": statistics.median(seconds),
           "calls": {o: outcomes.count(o) for o in sorted(set(outcomes))}, "ratios": ratios, "alone_ns": alone, "verdict_s": seconds}
    if bench:
        row |= {"dobench_median_us": statistics.median(bench) / 1e3, "dobench_spread": spread(bench)}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surface", choices=CASES, default="c")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--dobench", action="store_true")
    parser.add_argument("--only", help="3us, 30us or 1ms")
    options = parser.parse_args()
    rows = {}
    for name, task, kernel, workload in CASES[options.surface]:
        if options.only in (None, name):
            rows[name] = measure(options, task, kernel, workload)
            print(f"{name}: {json.dumps(rows[name])}", file=sys.stderr, flush=True)
    print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
