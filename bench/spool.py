#!/usr/bin/env python3
"""How many verdicts does a minute of a held device give, through a spool?

    bench/spool.py [--surface c|cuda] [--count 100] [--seconds 100] [--bin build/bin]

COUNT jobs go into a fresh spool: kernels of different tasks in turn, each a text that nobody has seen (a constant changes),
compiled by the sender as far as this machine can.  Then one `klineage-worker --spool` runs until they are done, or for SECONDS.  The
minute is the worker's own, from its start: contexts, oracles and baselines that come up are in it.  Counted are verdicts that passed,
of kernels under 5 ms.  Prints one JSON object."""
import argparse
import concurrent.futures
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = {"c": [("tests/data/tasks/saxpy", "tests/data/tasks/saxpy/naive.c", "N=16384"), ("tasks/gemm", "tasks/gemm/naive.c", "tiny")],
           "cuda": [("tasks/gemm", "experts/gemm/cuda/*-expert.cu", "paper"), ("tasks/topk", "experts/topk/cuda/*-expert.cu", "paper"),
                    ("tasks/conv2d", "experts/conv2d/cuda/*-expert.cu", "paper"), ("tasks/softmax", "tasks/softmax/naive.cu", "paper"),
                    ("tasks/rmsnorm", "tasks/rmsnorm/naive.cu", "paper"), ("tasks/gemm", "tasks/gemm/naive.cu", "M=1024,N=1024,K=1024")]}
SHORT_NS = 5e6
PENDING = 11


def put(options, folder, i):
    task, pattern, workload = KERNELS[options.surface][i % len(KERNELS[options.surface])]
    source = sorted(ROOT.glob(pattern))[-1]
    fresh = folder / f"fresh{i}{source.suffix}"
    fresh.write_text(source.read_text() + f"\nstatic const int variant_{time.time_ns()} = {i};\n")
    command = [str(options.bin / "klineage"), "gate", str(ROOT / task), str(fresh), "--workload", workload, "--spool", str(folder / "spool"), "--no-journal", "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != PENDING:
        sys.exit(f"{' '.join(command)}\n{done.stderr}{done.stdout}")


def work(options, spool):
    """Seconds that the worker ran, and how it ended."""
    with open(spool.parent / "worker.log", "w") as log:
        start = time.monotonic()
        worker = subprocess.Popen([str(options.bin / "klineage-worker"), "--spool", str(spool)], stdout=log, stderr=log)
        try:
            worker.wait(options.seconds)
        except subprocess.TimeoutExpired:
            worker.terminate()
            worker.wait()
        return time.monotonic() - start, worker.returncode


def answers(spool):
    for path in sorted((spool / "done").glob("*/verdict.json"), key=lambda p: p.stat().st_mtime):
        verdict = json.loads(path.read_text())
        timed = verdict["time"] or {}
        yield {"task": verdict["task"]["name"], "workload": verdict["workload"], "outcome": verdict["outcome"], "median_ns": timed.get("median_ns"),
               "baseline": [v["baseline"] for v in timed.get("vs", [])], "total_s": verdict["total_ns"] / 1e9,
               "stages_ms": {k: v / 1e6 for k, v in verdict["stages_ns"].items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surface", choices=KERNELS, default="cuda")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spool = Path(folder) / "spool"
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: put(options, Path(folder), i), range(options.count)))
        seconds, status = work(options, spool)
        rows = list(answers(spool))
        failed = [json.loads(path.read_text()) for path in (spool / "done").glob("*/error.json")]
        said = (Path(folder) / "worker.log").read_text()[-2000:]
    short = [r for r in rows if r["outcome"] == "pass" and r["median_ns"] < SHORT_NS]
    if not short:
        sys.exit(f"no settled verdict of a kernel under 5 ms; the worker ended with {status}: {said}")
    print(json.dumps({"jobs": options.count, "worker_seconds": seconds, "verdicts": len(rows), "short": len(short), "per_minute": 60 * len(short) / seconds,
                      "status": status, "failed": failed, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
