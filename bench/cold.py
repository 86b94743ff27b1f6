#!/usr/bin/env python3
"""A cold candidate: how long from a source nobody has seen to its verdict, beyond its own timed runs?

    bench/cold.py [--surface c|cuda|cuda-graph|triton] [--count 8] [--bin build/bin/klineage]

Every candidate is a fresh text (a constant changes), so nothing of it is in any cache; every verdict is a fresh process that probes the
device, starts its runners and creates their contexts.  The task's oracle and naive kernel were compiled before, as they are
for every candidate but the first.  `beyond` is the whole process's wall time less the time inside kernels.  Prints one JSON object."""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = {"c": ("tasks/gemm", "naive.c", "tiny", "openblas"), "cuda": ("tasks/rmsnorm", "naive.cu", "tiny", "naive"), "cuda-graph": ("tasks/gemm", "naive.cu", "M=1024,N=1024,K=1024", "cublas"),
         "triton": ("tasks/gemm", "naive.triton.py", "tiny", "cublas")}


def judge(options, task, kernel, workload, baseline):
    command = [options.bin, "gate", str(ROOT / task), str(kernel), "--workload", workload, "--baseline", baseline, "--no-journal", "--json", "-q"]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    wall = time.monotonic() - start
    if done.returncode not in (0, 5):
        sys.exit(f"{' '.join(command)}\n{done.stderr}{done.stdout}")
    return json.loads(done.stdout), wall


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surface", choices=CASES, default="c")
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    options = parser.parse_args()
    task, name, workload, baseline = CASES[options.surface]
    source = (ROOT / task / name).read_text()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(options.count + 1):
            fresh = Path(folder) / f"fresh{i}{Path(name).suffix}"
            constant = f"variant_{time.time_ns()} = {i}"
            fresh.write_text(source + (f"\n{constant}\n" if fresh.suffix == ".py" else f"\nstatic const int {constant};\n"))
            verdict, wall = judge(options, task, fresh, workload, baseline)
            compile_s = verdict["stages_ns"]["compile"] * 1e-9
            kernels_s = (verdict["total_ns"] - verdict["overhead_ns"]) * 1e-9 - compile_s - verdict["stages_ns"].get("wait", 0) * 1e-9
            rows.append({"wall_s": wall, "compile_s": compile_s, "kernels_s": kernels_s, "beyond_s": wall - kernels_s,
                         "stages_ms": {k: v * 1e-6 for k, v in verdict["stages_ns"].items()}, "toolchain": verdict["platform"]["toolchain"]})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    rows = rows[1:]  # the first also compiled the oracle and the naive kernel
    print(json.dumps({"task": task, "workload": workload, "baseline": baseline, "count": options.count, "platform": verdict["platform"]["name"],
                      "toolchain": rows[0]["toolchain"],
                      "wall_s": statistics.median(r["wall_s"] for r in rows), "beyond_s": statistics.median(r["beyond_s"] for r in rows),
                      "beyond_s_worst": max(r["beyond_s"] for r in rows), "compile_s": statistics.median(r["compile_s"] for r in rows),
                      "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
