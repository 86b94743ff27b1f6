#!/usr/bin/env python3
"""What a verdict costs: every row of the table in docs/numbers.md, in order, into one file.

    bench/gate_cost.py cpu|h200 [--out FILE] [--only ROW,...] [--seconds 520] [--bin build/bin] [--peers build/peers] [--commit SHA] [--quick]

Each row is one command of bench/.  The file (bench/results/MACHINE/gate-cost.json, unless --out says otherwise) is written after every
row and keeps the rows that this run does not measure: command, commit, machine, seconds, and the command's own JSON with its raw
samples, or why there is none.  A row that outlasts its limit is ended; one that no longer fits into --seconds is not begun, and the
next run may name it with --only.  `h200` rows need a CUDA device.  --quick is a trial of the programs with the least counts, into
build/MACHINE: its figures are not to be published.  `bench/report` renders the file."""
import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEAST_S = 5  # of time that is left: less begins nothing


@dataclass
class Row:
    """One line of the table.  `words` may say {bin}, {peers} and {seconds}; `quick` are words of a trial."""

    name: str
    label: str
    before: str
    most: str
    stretch: str
    limit_s: int
    words: str
    quick: str
    shown: callable  # the command's JSON as text


def milliseconds(row):
    return f"{row['overhead_ms']['median']:.0f} ms (95 % of {row['count']}: {row['overhead_ms']['p95']:.0f} ms)"


def whole_seconds(row):
    each = ", ".join(f"{r['total_ms'] / 1e3:.2f}" for r in row["rows"])
    return f"{row['total_ms']['median'] / 1e3:.2f} s (median of {each})"


def fresh_milliseconds(row):
    return f"{row['beyond_ms']['median']:.0f} ms (95 % of {row['count']}: {row['beyond_ms']['p95']:.0f} ms)"


def cold_seconds(row):
    return f"{row['beyond_s']:.2f} s (compile {row['compile_s']:.2f} s)"


def one_verdict(row):
    return f"{row['total_ns'] / 1e9:.2f} s, {row['outcome']}"


def spreads(row):
    return "; ".join(f"{name}: cv {100 * r['ratio_cv']:.2f} %, spread {100 * r['ratio_spread']:.2f} %" for name, r in row.items())


def per_minute(row):
    return f"{row['per_minute']:.0f} ({row['short']} of {row['jobs']} jobs in {row['worker_seconds']:.0f} s)"


def standing(tool, gate_s):
    """Does the gate's whole verdict end before the tool's least measurement that spreads no more?"""
    if tool.get("equal"):
        return "ahead of" if tool["equal"]["seconds"] > gate_s else "behind"
    return "ahead of" if max(level["seconds"] for level in tool["levels"]) >= gate_s else "undecided beside"


def beside(row):
    sizes = []
    for size, tools in row["rows"].items():
        if "gate" not in tools:
            sizes.append(f"{size}: the gate has no row")
            continue
        gate_s, places = tools["gate"]["levels"][0]["seconds"], {}
        for name, tool in tools.items():
            if name != "gate":
                places.setdefault(standing(tool, gate_s), []).append(name)
        sizes.append(f"{size}: " + ", ".join(f"{place} {' '.join(names)}" for place, names in sorted(places.items())))
    if not sizes:
        raise LookupError("no tool was measured")
    return "; ".join(sizes)


ROWS = {
    "cpu": [
        Row("verdict", "CPU verdict beyond compile and runs, gemm 64³", "358 ms", "60 ms", "30 ms", 90,
            "{bin}/bench_verdict gemm tasks/gemm/naive.c tiny 20", "{bin}/bench_verdict gemm tasks/gemm/naive.c tiny 2", milliseconds),
        Row("aa", "A/A cv at 3 µs, 30 µs, 1 ms, CPU", ".18, .37, .13 %", ".2 %", ".1 %", 700,
            "bench/aa.py --surface c --repeats 20 --bin {bin}/klineage", "bench/aa.py --surface c --repeats 2 --only 1ms --bin {bin}/klineage", spreads),
        Row("peers", "one verdict to 0.5 % beside hyperfine, nanobench, Google Benchmark, pytest-benchmark", "–", "ahead at equal spread", "", 460,
            "bench/peers.py --surface c --bin {bin} --peers {peers} --seconds {seconds}",
            "bench/peers.py --surface c --bin {bin} --peers {peers} --seconds 5 --repeats 2 --only 1ms", beside),
    ],
    "h200": [
        Row("verdict", "H200, short kernel, warm, beyond compile and runs", "638 ms", "100 ms", "60 ms", 60,
            "{bin}/bench_verdict gemm tasks/gemm/naive.cu tiny 10", "{bin}/bench_verdict gemm tasks/gemm/naive.cu tiny 1", milliseconds),
        Row("cold-events", "H200, cold: source to verdict in a fresh process, beyond timed runs, by events", "1.44 s", "1.0 s", "0.6 s", 60,
            "bench/cold.py --surface cuda --bin {bin}/klineage", "bench/cold.py --surface cuda --count 1 --bin {bin}/klineage", cold_seconds),
        Row("cold-graph", "the same, by graphs", "3.24 s", "1.0 s", "0.6 s", 60,
            "bench/cold.py --surface cuda-graph --bin {bin}/klineage", "bench/cold.py --surface cuda-graph --count 1 --bin {bin}/klineage", cold_seconds),
        Row("triton-warm", "H200, Triton: a new source to its verdict in a running gate, beyond timed runs", "–", "0.6 s", "", 60,
            "{bin}/bench_verdict --fresh gemm tasks/gemm/naive.triton.py tiny 10",
            "{bin}/bench_verdict --fresh gemm tasks/gemm/naive.triton.py tiny 1", fresh_milliseconds),
        Row("triton-cold", "the same in a fresh process", "–", "1.6 s", "", 60,
            "bench/cold.py --surface triton --bin {bin}/klineage", "bench/cold.py --surface triton --count 1 --bin {bin}/klineage", cold_seconds),
        Row("tilelang-warm", "H200, TileLang: likewise, in a running gate", "–", "1.5 s", "", 90,
            "{bin}/bench_verdict --fresh gemm tasks/gemm/naive.tilelang.py tiny 10",
            "{bin}/bench_verdict --fresh gemm tasks/gemm/naive.tilelang.py tiny 1", fresh_milliseconds),
        Row("conv2d", "Conv2d expert, paper shape, warm", "4–10 s", "1.0 s", "0.5 s", 60,
            "{bin}/bench_verdict conv2d experts/conv2d/cuda/8-expert.cu paper 5", "{bin}/bench_verdict conv2d experts/conv2d/cuda/8-expert.cu paper 1", whole_seconds),
        Row("fmha", "FMHA expert, paper shape, warm", "21–24 s", "4 s", "2 s", 90,
            "{bin}/bench_verdict fmha experts/fmha/cuda/10-expert.cu paper 3", "{bin}/bench_verdict fmha experts/fmha/cuda/10-expert.cu paper 1", whole_seconds),
        Row("fmha-naive", "FMHA naive (1.6 s a run)", "50–110 s", "12 s", "8 s", 120,
            *["{bin}/klineage gate fmha experts/fmha/cuda/1-naive.cu --workload paper --no-journal --json -q"] * 2, one_verdict),
        Row("spool", "verdicts per minute of a held GPU through a spool, kernels under 5 ms", "19", "60", "150", 110,
            "bench/spool.py --surface cuda --bin {bin} --seconds 60", "bench/spool.py --surface cuda --bin {bin} --count 2 --seconds 30", per_minute),
        Row("aa", "A/A spread on the H200", ".05–.20 %", "no worse", "", 150,
            "bench/aa.py --surface cuda --repeats 10 --bin {bin}/klineage", "bench/aa.py --surface cuda --repeats 2 --only 3us --bin {bin}/klineage", spreads),
        Row("peers", "one verdict to 0.5 % beside `do_bench` and KernelBench's eval", "–", "ahead at equal spread", "", 460,
            "bench/peers.py --surface cuda --bin {bin} --peers {peers} --seconds {seconds}",
            "bench/peers.py --surface cuda --bin {bin} --peers {peers} --seconds 5 --repeats 2 --only 3us", beside),
    ],
}


def said_by(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def machine():
    names = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {"cpu": names[0] if names else platform.processor(), "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "compiler": said_by("cc", "--version").partition("\n")[0], "gpu": said_by("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
            "load_before": os.getloadavg()[0]}


def end(process):
    """Ends a program and everything that it started, which shares its session; what it still said."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        return process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.communicate()


def measured(command, limit_s, shown):
    """The command's JSON as `result`, or `why` there is none that `shown` can read."""
    late = ""
    try:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        out, said = process.communicate(timeout=limit_s)
    except OSError as error:
        return {"why": str(error)}
    except subprocess.TimeoutExpired:
        (out, said), late = end(process), f"it did not end within {limit_s:.0f} s; "
    try:
        result = json.loads(out)
        shown(result)
        return {"result": result, "status": process.returncode}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {"why": f"{late}it ended with {process.returncode}: {(said or out).strip()[-600:].replace(f'{ROOT}/', '')}"}


def usable(surface, options):
    """Why nothing can be measured here, or None."""
    if not (options.bin / "bench_verdict").exists():
        return f"no {options.bin / 'bench_verdict'}: build it first"
    if surface == "h200" and not said_by("nvidia-smi", "-L"):
        return "no CUDA device: nvidia-smi lists none"
    return None


def measure(row, options, left_s):
    limit = min(row.limit_s, left_s)
    text = row.quick if options.quick else row.words
    words = [w.format(bin=os.path.relpath(options.bin, ROOT), peers=os.path.relpath(options.peers, ROOT), seconds=round(max(limit - 40, limit / 2)))
             for w in text.split()]
    here, start = machine(), time.monotonic()
    python = [sys.executable] if words[0].endswith(".py") else []
    found = measured([*python, str(ROOT / words[0]), *words[1:]], limit, row.shown)
    return {"command": " ".join(words), "commit": options.commit, "machine": here, "seconds": time.monotonic() - start} | found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("surface", metavar="cpu|h200", choices=ROWS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", help="names of rows, separated by commas")
    parser.add_argument("--seconds", type=float, default=520, help="of all rows together")
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin")
    parser.add_argument("--peers", type=Path, default=ROOT / "build/peers")
    parser.add_argument("--commit", default=said_by("git", "rev-parse", "HEAD") or "unknown")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.bin, options.peers = options.bin.resolve(), options.peers.resolve()
    options.out = options.out or ROOT / ("build" if options.quick else "bench/results") / options.surface / "gate-cost.json"
    options.rows = options.only.split(",") if options.only else [row.name for row in ROWS[options.surface]]
    unknown = set(options.rows) - {row.name for row in ROWS[options.surface]}
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}; rows: {', '.join(row.name for row in ROWS[options.surface])}")
    return options


def main():
    options = arguments()
    trouble = usable(options.surface, options)
    if trouble:
        sys.exit(f"gate_cost: {trouble}")
    begun = time.monotonic()
    kept = json.loads(options.out.read_text()) if options.out.exists() else {}
    for row in ROWS[options.surface]:
        left = options.seconds - (time.monotonic() - begun)
        if row.name not in options.rows:
            continue
        if left < LEAST_S:
            print(f"{row.name}: not begun, the time is up; --only {row.name} measures it", file=sys.stderr, flush=True)
            continue
        print(f"{row.name}: {row.label} ...", file=sys.stderr, flush=True)
        kept[row.name] = measure(row, options, left)
        shown = row.shown(kept[row.name]["result"]) if "result" in kept[row.name] else kept[row.name]["why"]
        print(f"{row.name}: {shown} ({kept[row.name]['seconds']:.0f} s)", file=sys.stderr, flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
