#!/usr/bin/env python3
"""The same kernel file ahead of time through the gate and by Triton's own JIT: is its time the same?

    bench/jit.py [--bin build/bin/klineage] [--only NAME...] [--out verdicts/]      on a host with a GPU, torch and triton

Each file of tests/data/triton is judged against a baseline that hands it to Triton as a user would (jit_baseline.py), at the same
shape, params, warps and stages, by the gate's own protocol: interleaved, each side in its own process.  Both sides compile with the
package that the gate's Python has (KLINEAGE_PYTHON, else python3).  `ratio` is JIT over ahead of time, `call` what the gate makes of it.
Prints one JSON object; exit status 1 unless every call is `same`."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GEMM = "M=4096,N=4096,K=4096"
# file, folder of its task, shape
KERNELS = {
    "saxpy": ("tests/cheats/triton/control-naive.py", "tests/data/tasks/saxpy", "N=1000003"),
    "softmax": ("tests/data/triton/softmax.py", "tasks/softmax", "rows=4096,cols=1000"),
    "softmax_two_launches": ("tests/data/triton/softmax_two_launches.py", "tasks/softmax", "rows=4096,cols=1000"),
    "gemm_pointers": ("tests/data/triton/gemm_pointers.py", "tasks/gemm", GEMM),
    "gemm_descriptors": ("tests/data/triton/gemm_descriptors.py", "tasks/gemm", GEMM),
    "gemm_device_descriptors": ("tests/data/triton/gemm_device_descriptors.py", "tasks/gemm", GEMM),
    "gemm_cluster": ("tests/data/triton/gemm_cluster.py", "tasks/gemm", GEMM),
    "flash": ("tests/data/triton/flash.py", "tasks/fmha", "B=1,total_q=4096,total_kv=4096,H=32"),
}


def case(task, workload, kernel, params):
    """What jit_baseline.py launches at the sizes of a workload."""
    rows = (json.loads(line) for line in (ROOT / task / "workloads.jsonl").read_text().splitlines())
    axes = next(row["axes"] for row in rows if row["klineage"]["label"] == workload and row["klineage"].get("on") == "gpu")
    return {"axes": axes, "kernel": Path(kernel).name, "file": str(kernel), "params": params}


def filled(script, known):
    """The text of a baseline with what its empty tables are to hold."""
    for name, what in known.items():
        script = script.replace(f"\n{name} = {{}}\n", f"\n{name} = {what!r}\n")
    return script


def task_with_jit(folder, task, cases, others=None):
    """A copy of the task whose only baselines on a GPU are the files by their own JIT, and scripts that know the same cases."""
    shutil.copytree(ROOT / task, folder)
    definition = json.loads((folder / "definition.json").read_text())
    scripts = {**(others or {}), "jit": ROOT / "bench/jit_baseline.py"}
    definition["klineage"]["baselines"] = [{"name": name, "on": "gpu", "file": f"baseline/by_{name}.py"} for name in scripts]
    (folder / "definition.json").write_text(json.dumps(definition))
    (folder / "baseline").mkdir(exist_ok=True)
    outputs = {name: (t["dtype"], t["shape"]) for name, t in definition["outputs"].items()}
    shapes = {name: t["shape"] for name, t in definition["inputs"].items()}
    known = {"TASK": {"shapes": shapes, "outputs": outputs, "cases": [{k: one[k] for k in ("axes", "kernel", "params")} for one in cases]},
             "KERNELS": {one["kernel"]: Path(one["file"]).read_text() for one in cases}}
    for name, script in scripts.items():
        (folder / f"baseline/by_{name}.py").write_text(filled(script.read_text(), known))


def judge(options, name):
    kernel, task, shape = KERNELS[name]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / Path(task).name
        task_with_jit(place, task, [{"axes": {}, "kernel": "kernel.py", "file": str(ROOT / kernel), "params": {}}])
        command = [options.bin, "gate", str(place), str(ROOT / kernel), "--workload", shape, "--baseline", "jit", "--no-journal", "--json", "-q"]
        env = {**os.environ, "TRITON_DISABLE_LINE_INFO": "1", "TRITON_CACHE_DIR": folder}
        done = subprocess.run(command, capture_output=True, text=True, env=env)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"outcome": "error", "why": done.stderr.strip(), "time": None, "degradations": []}


def row_of(verdict):
    row = {"outcome": verdict["outcome"], "why": verdict["why"], "degradations": verdict["degradations"]}
    versus = verdict["time"]["vs"][0] if verdict["time"] and verdict["time"]["vs"] else None
    if versus:
        row |= {"us": verdict["time"]["median_ns"] / 1e3, "jit_us": versus["baseline_ns"] / 1e3, "method": verdict["time"]["method"],
                **{k: versus[k] for k in ("ratio", "low", "high", "floor", "pairs", "call")},
                "jit": versus["described"], "artefact": verdict["artefact"][:16],
                "toolchain": verdict["platform"]["toolchain"]}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--only", nargs="+", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = {}
    for name in options.only:
        verdict = judge(options, name)
        rows[name] = row_of(verdict)
        print(json.dumps({name: rows[name]}), file=sys.stderr, flush=True)
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{name}.json").write_text(json.dumps(verdict, indent=1))
    print(json.dumps(rows, indent=1))
    return 0 if all(r.get("call") == "same" for r in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
