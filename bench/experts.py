#!/usr/bin/env python3
"""The expert ladders of experts/ measured through the gate, rung by rung.

    bench/experts.py [--surface c|cuda|triton|tilelang] [--bin build/bin/klineage] [--tasks gemm,...] [--last] [--workloads cpu,cpu-large] [--rungs REGEX] [--quick]
                     [--spool DIR --arch sm_90a] [--out FOLDER]

Runs `klineage gate TASK RUNG --json` for every kernel of experts/TASK/SURFACE; --last takes the two last rungs alone (one thread, and
threads). An unstable verdict is asked for once more. With --out the verdicts are kept there. --quick is for rungs that take seconds
a run. With --spool the work goes to another host: exit status 11 says that verdicts are missing; run the worker there, then this
again. Prints one JSON object."""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PENDING = 11


def gate(options, task, rung, workload):
    command = [options.bin, "gate", f"tasks/{task}", str(rung.relative_to(ROOT)), "--workload", workload, "--no-journal", "--json", "-q"]
    command += ["--spool", options.spool, "--arch", options.arch] if options.spool else []
    command += ["--quick"] if options.quick else []
    for _ in range(1 if options.spool else 2):
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        if done.returncode == PENDING:
            options.missing += 1
            return None
        try:
            verdict = json.loads(done.stdout)
        except json.JSONDecodeError:
            print(f"{rung}: exit {done.returncode}: {done.stderr.strip()}", file=sys.stderr, flush=True)
            return None
        if verdict["outcome"] != "unstable":
            return verdict
    return verdict


def rungs_of(folder):
    """Paths of a ladder's kernels, from the bottom; a rung that is kept as edits has the path of the kernel that they make."""
    ending = {"c": ".c", "cuda": ".cu"}.get(folder.name, ".py")
    rungs = {path.with_suffix(ending) for path in folder.iterdir() if path.suffix in (ending, ".diff")}
    return sorted(rungs, key=lambda path: int(re.match(r"\d+", path.name)[0]))


def row_of(verdict):
    row = {"outcome": verdict["outcome"], "why": verdict["why"], "platform": verdict["platform"]["name"], "device": verdict["platform"]["device"],
           "created": verdict["created"], "receipt": verdict["receipt"]}
    if verdict["time"]:
        versus = verdict["time"]["vs"][0]
        row |= {"us": verdict["time"]["median_ns"] / 1e3, "baseline": versus["baseline"], "baseline_us": versus["baseline_ns"] / 1e3,
                "described": versus["described"], "ratio": versus["ratio"], "low": versus["low"], "high": versus["high"], "floor": versus["floor"]}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surface", choices=["c", "cuda", "triton", "tilelang"], default="c")
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--tasks", default=",".join(sorted(p.name for p in ROOT.glob("experts/*") if p.is_dir())))
    parser.add_argument("--workloads", default="")
    parser.add_argument("--last", action="store_true")
    parser.add_argument("--rungs", default="", help="those whose name matches")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--spool")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.missing = 0
    workloads = (options.workloads or ("cpu,cpu-large" if options.surface == "c" else "paper")).split(",")
    rows = {}
    for task in options.tasks.split(","):
        rungs = [rung for rung in rungs_of(ROOT / "experts" / task / options.surface) if re.search(options.rungs, rung.stem)]
        for rung in rungs[-2:] if options.last else rungs:
            for workload in workloads:
                verdict = gate(options, task, rung, workload)
                if not verdict:
                    continue
                rows[f"{task}/{rung.stem}/{workload}"] = row_of(verdict)
                print(f"{task}/{rung.stem}/{workload}: {rows[f'{task}/{rung.stem}/{workload}'].get('ratio')}", file=sys.stderr, flush=True)
                if options.out:
                    options.out.mkdir(parents=True, exist_ok=True)
                    (options.out / f"{task}.{rung.stem}.{workload}.json").write_text(json.dumps(verdict, indent=1) + "\n")
    print(json.dumps(rows, indent=2))
    return PENDING if options.missing else 0


if __name__ == "__main__":
    sys.exit(main())
