#!/usr/bin/env python3
"""How long until the ratio of two implementations is known to 0.5 %, and how much does it spread?  The gate beside its peers.

    bench/peers.py [--surface c|cuda] [--repeats 10] [--seconds 320] [--only 3us] [--tools gate,nanobench] [--peers build/peers]

The kernels of bench/aa.py, each against a second copy of itself, so that the true ratio is 1.  Each tool is set up as its own
manual advises, and its effort (runs, rounds, time) is doubled until the 95 % interval of the ratio has a half-width of 0.5 %.
Then all tools measure in turn, REPEATS times each, in fresh processes.  Where a tool spreads more than the gate (cv over the repeats), its
effort grows until it does not; where less, it shrinks: `equal` is the least effort that was found to spread no more than the gate.

`seconds` are those of one measurement of both sides, without compiling.  For the gate it is a whole warm verdict, with its
checks; for tools that work inside a process, from the first call to the last; for hyperfine its whole run.  A tool that is not there is named and left out.
bench/README.md says where they come from.  Prints one JSON object."""
import argparse
import contextlib
import json
import math
import os
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aa

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve().parent / "peers"
HALF_WIDTH = 0.005
OWN_S, LONGEST_S = 2, 10  # of one measurement: at the tool's own effort, and at the gate's spread
CALLS = {"3us": 20000, "30us": 2000, "1ms": 100}  # of one process that hyperfine times: some 60 ms
CALL = {"saxpy": "saxpy(2.5f, x, y, out, axes[0])", "gemm": "gemm(x, y, out, axes[0], axes[1], axes[2])"}


class Ended(Exception):
    """Somebody wants this run to end."""


def ended(*_):
    raise Ended


class Missing(Exception):
    """Why a tool cannot be measured here."""


def run(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, **more)
    if done.returncode:
        raise Missing(f"{shlex.join(str(w) for w in command)} ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


# ---- statistics: the same for every tool that prints samples ---------------------------------------------------------------


def median_width(samples):
    """Median, and half of its 95 % interval by order statistics, as a share of it."""
    ordered, reach = sorted(samples), 0.98 * math.sqrt(len(samples))
    middle = (len(ordered) - 1) / 2
    low, high = ordered[max(math.floor(middle - reach), 0)], ordered[min(math.ceil(middle + reach), len(ordered) - 1)]
    median = statistics.median(ordered)
    return median, (high - low) / 2 / median


def mean_width(samples):
    mean = statistics.fmean(samples)
    return mean, 1.96 * statistics.stdev(samples) / math.sqrt(len(samples)) / mean


def ratio_of(a, b, center):
    """Ratio b / a of two independent series, half-width of its 95 % interval, number of samples."""
    (first, wide), (second, wider) = center(a), center(b)
    return {"ratio": second / first, "half": math.hypot(wide, wider), "samples": len(a)}


# ---- the tools ---------------------------------------------------------------------------------------------------------


class Tool:
    """measure(case, level): one ratio, at the tool's usual effort times 2^level."""

    least = -2

    def __init__(self, bench):
        self.bench = bench

    def refresh(self):
        """A new round of repeats begins."""

    def close(self):
        pass


class Gate(Tool):
    least = 0

    def measure(self, case, level):
        path = str(ROOT / case.task / case.kernel)
        command = [self.bench.bin / "bench_verdict", ROOT / case.task, path, case.workload, "1", path]
        row = json.loads(run(command))["rows"][0]
        return {"command": command, "ratio": row["ratio"], "half": (row["high"] - row["low"]) / 2 / row["ratio"], "samples": row["pairs"],
                "seconds": row["total_ms"] / 1e3, "profile_seconds": row["profile_ms"] / 1e3, "outcome": row["outcome"]}


class OnCore(Tool):
    """A peer on the CPU: the same two objects, on one core of its own."""

    def pinned(self, *command):
        return ["taskset", "-c", self.bench.core, *command]


class Hyperfine(OnCore):
    def measure(self, case, level):
        hyperfine = self.bench.program("hyperfine")
        loop, out = self.bench.built("loop"), self.bench.scratch / "hyperfine.json"
        words = self.bench.words(case)
        command = self.pinned(hyperfine, "--shell=none", "--warmup", 3, "--runs", round(10 * 2**level), "--style", "none", "--export-json", out,
                              *(shlex.join([str(loop), side, str(CALLS[case.size]), *words]) for side in "AB"))
        start = time.monotonic()
        run(command)
        seconds = time.monotonic() - start
        a, b = (row["times"] for row in json.loads(out.read_text())["results"])
        return {"command": command, "seconds": seconds} | ratio_of(a, b, mean_width)


class Nanobench(OnCore):
    def measure(self, case, level):
        command = self.pinned(self.bench.built("nanobench"), round(52 * 2**level), *self.bench.words(case))
        row = json.loads(run(command))
        return {"command": command, "half": (row["high"] - row["low"]) / 2 / row["ratio"]} | row


class GoogleBenchmark(OnCore):
    least = -4

    def measure(self, case, level):
        command = self.pinned(self.bench.built("google", "-lbenchmark", "-lpthread"), "--benchmark_enable_random_interleaving=true",
                              "--benchmark_repetitions=10", f"--benchmark_min_time={0.05 * 2**level:g}", "--benchmark_format=json", *self.bench.words(case))
        start = time.monotonic()
        rows = json.loads(run(command))["benchmarks"]
        seconds = time.monotonic() - start
        a, b = ([r["real_time"] for r in rows if r["run_type"] == "iteration" and r["run_name"] == side] for side in "AB")
        return {"command": command, "seconds": seconds} | ratio_of(a, b, mean_width)


class PytestBenchmark(OnCore):
    def measure(self, case, level):
        out = self.bench.scratch / "pytest.json"
        command = self.pinned(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", HERE / "pytest_pair.py", f"--benchmark-json={out}",
                              f"--benchmark-max-time={0.25 * 2**level:g}", "--benchmark-disable-gc")
        pair = {"objects": self.bench.objects(case), "elements": case.elements, "axes": case.axes}
        run(command, env=os.environ | {"PEER_PAIR": json.dumps(pair)})
        a, b = json.loads(out.read_text())["benchmarks"]
        return {"command": command, "seconds": a["extra_info"]["seconds"] + b["extra_info"]["seconds"]} | ratio_of(a["stats"]["data"], b["stats"]["data"], median_width)


class OnDevice(Tool):
    """A peer on the GPU, asked in a process that has its modules loaded; a fresh one for every round of repeats."""

    process, center = None, staticmethod(median_width)

    def refresh(self):
        self.bench.stop_device()

    def measure(self, case, level):
        question = {"tool": self.name, "kernel": str(ROOT / case.task / case.kernel), "axes": case.workload, "effort": round(100 * 2**level)}
        answer = self.bench.ask_device(question)
        return {"command": ["bench/peers/gpu.py", json.dumps(question)], "seconds": answer["seconds"]} | ratio_of(*answer["samples"], self.center)


class DoBench(OnDevice):
    name = "do_bench"


class KernelBench(OnDevice):
    name, center = "kernelbench", staticmethod(mean_width)


TOOLS = {"c": {"gate": Gate, "hyperfine": Hyperfine, "nanobench": Nanobench, "google-benchmark": GoogleBenchmark, "pytest-benchmark": PytestBenchmark},
         "cuda": {"gate": Gate, "do_bench": DoBench, "kernelbench": KernelBench}}


class Case:
    def __init__(self, size, task, kernel, workload):
        self.size, self.task, self.kernel, self.workload = size, task, kernel, workload
        self.axes = [int(pair.split("=")[1]) for pair in workload.split(",")]
        m, n, k = self.axes if len(self.axes) == 3 else (1, self.axes[0], 1)
        self.elements = [m * k, n * k, m * n] if len(self.axes) == 3 else [n] * 3


class Bench:
    """Where programs, objects and helpers of this run are."""

    def __init__(self, options, scratch):
        self.bin, self.peers, self.scratch, self.device = options.bin, options.peers, Path(scratch), None
        self.core = str(max(os.sched_getaffinity(0)))

    def program(self, name):
        found = shutil.which(name) or shutil.which(name, path=self.peers)
        if not found:
            raise Missing(f"no program {name} in PATH or {self.peers}")
        return found

    def built(self, name, *libraries):
        """bench/peers/NAME.cpp, compiled once."""
        program = self.peers / "bin" / name
        if not program.exists():
            program.parent.mkdir(parents=True, exist_ok=True)
            run(["c++", "-std=c++17", "-O2", f"-I{self.peers}", HERE / f"{name}.cpp", "-o", program, f"-L{self.peers / 'lib'}", "-Wl,-rpath,$ORIGIN/../lib", *libraries, "-ldl"])
        return program

    def objects(self, case):
        """The kernel twice, compiled as the gate compiles it."""
        made = [self.scratch / f"{case.size}-{side}.so" for side in "AB"]
        if not made[1].exists():
            task = Path(case.task).name
            types = [f"-Dkl_t_{name}=float" for name in ("x", "y", "weight", "out")]
            wrapped = f'#include "{ROOT / case.task / case.kernel}"\nvoid run(const float *x, const float *y, float *out, const int32_t *axes) {{ {CALL[task]}; }}\n'
            for object_ in made:
                run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "-DKL_BF16=1", "-DKL_DTYPE_x=0", *types, "-x", "c", "-", "-o", object_], input=wrapped)
        return [str(path) for path in made]

    def words(self, case):
        return [*self.objects(case), *(str(n) for n in case.elements + case.axes)]

    def ask_device(self, question):
        if not self.device:
            env = os.environ | {"PYTHONPATH": f"{self.peers / 'site'}:{os.environ.get('PYTHONPATH', '')}", "KERNELBENCH": str(self.peers / "KernelBench")}
            with open(self.scratch / "gpu.log", "w") as log:
                self.device = subprocess.Popen([sys.executable, str(HERE / "gpu.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, env=env)
        try:
            self.device.stdin.write(json.dumps(question) + "\n")
            self.device.stdin.flush()
            answer = json.loads(self.device.stdout.readline())
        except (OSError, ValueError):
            self.stop_device()
            why = (self.scratch / "gpu.log").read_text().strip().splitlines()[-1:]
            raise Missing(f"bench/peers/gpu.py: {''.join(why) or 'ended'}") from None
        if "error" in answer:
            raise Missing(answer["error"])
        return answer

    def stop_device(self):
        """It ends when nothing more can be asked."""
        if self.device:
            with contextlib.suppress(OSError):
                self.device.stdin.close()
            self.device.wait()
            self.device = None


# ---- the measurement -----------------------------------------------------------------------------------------------------


def timed(tool, case, level):
    """One measurement, and how long it took with the start of its programs."""
    start = time.monotonic()
    one = tool.measure(case, level)
    return one | {"wall": time.monotonic() - start}


def plain(scratch, text):
    """As a person would write it: from the repository's root, with files of the run by their names."""
    for place, name in ((f"{scratch}/", ""), (f"{ROOT}/", ""), (sys.executable, "python3")):
        text = text.replace(place, name)
    return text


def summary(tool, level, found):
    ratios = [one["ratio"] for one in found]
    return {"level": level, "command": plain(tool.bench.scratch, shlex.join(str(word) for word in found[-1]["command"])), "seconds": statistics.median(one["seconds"] for one in found),
            "wall": statistics.median(one["wall"] for one in found), "cv": aa.cv(ratios), "spread": aa.spread(ratios), "reached": sum(one["half"] <= HALF_WIDTH for one in found),
            "rows": [{k: v for k, v in one.items() if k != "command"} for one in found]}


def own_effort(tool, case):
    """The least effort that was seen to bring the tool's own interval to 0.5 %, or as far as time allows."""
    level = 0
    while True:
        one = tool.measure(case, level)
        steps = max(1, math.ceil(2 * math.log2(one["half"] / HALF_WIDTH))) if one["half"] > HALF_WIDTH else 0
        steps = min(steps, math.floor(math.log2(OWN_S / one["seconds"])))
        if isinstance(tool, Gate) or steps < 1:
            return level
        level += steps


def repeat(tool, case, level, count):
    found = []
    for _ in range(count):
        tool.refresh()
        found.append(timed(tool, case, level))
    return summary(tool, level, found)


def next_level(last, cv, least):
    """The effort at which the spread should meet the gate's, if it falls with the root of the effort."""
    away = 2 * math.log2(max(last["cv"], 1e-9) / cv)
    if away > 0:
        return last["level"] + min(math.ceil(away), math.floor(math.log2(LONGEST_S / last["seconds"])))
    return max(last["level"] + min(math.ceil(away), -1), least)


def to_equal(tool, case, first, cv, options, until):
    """Efforts around the first one, until the spread crosses the gate's or the time is up."""
    levels, up = [first], first["cv"] > cv
    while (levels[-1]["cv"] > cv) == up:
        last = levels[-1]
        level = next_level(last, cv, tool.least)
        predicted = last["wall"] + last["seconds"] * (2 ** (level - last["level"]) - 1)
        if (level > last["level"]) != up or level == last["level"] or time.monotonic() + predicted * options.repeats > until:
            break
        levels.append(repeat(tool, case, level, options.repeats))
    return levels


class Run:
    """One table: cases times tools."""

    def __init__(self, options, bench):
        self.options, self.begun = options, time.monotonic()
        self.cases = [Case(*words) for words in aa.CASES[options.surface] if options.only in (None, words[0])]
        chosen = options.tools.split(",") if options.tools else TOOLS[options.surface]
        self.tools = {name: TOOLS[options.surface][name](bench) for name in chosen}
        self.scratch, self.efforts, self.found, self.missing, self.rows = bench.scratch, {}, {}, {}, {}

    def attempt(self, name, action, *words):
        """None where the tool is not there; it is asked no more."""
        try:
            return action(*words)
        except (Missing, subprocess.TimeoutExpired, OSError) as error:
            self.missing[name] = plain(self.scratch, str(error))
            print(f"{name} is left out: {error}", file=sys.stderr, flush=True)
            return None

    def here(self):
        return [(name, tool) for name, tool in self.tools.items() if name not in self.missing]

    def own(self):
        """Every tool at the effort that its own interval asks for, in turn."""
        for case in self.cases:
            for name, tool in self.here():
                self.efforts[case.size, name] = self.attempt(name, own_effort, tool, case)
        for i in range(self.options.repeats):
            for name, tool in self.here():
                tool.refresh()
            for case in self.cases:
                for name, tool in self.here():
                    one = self.attempt(name, timed, tool, case, self.efforts[case.size, name])
                    self.found.setdefault((case.size, name), []).extend([one] if one else [])
            print(f"repeat {i + 1} of {self.options.repeats}, {time.monotonic() - self.begun:.0f} s", file=sys.stderr, flush=True)
            if i and time.monotonic() - self.begun > 0.75 * self.options.seconds:
                break

    def summarize(self):
        for (size, name), ones in self.found.items():
            if len(ones) > 1:
                self.rows.setdefault(size, {})[name] = {"levels": [summary(self.tools[name], self.efforts[size, name], ones)]}

    def equal(self):
        """The least effort of each tool that spreads no more than the gate."""
        left = [(case, name) for case in self.cases for name, _ in self.here() if name != "gate" and {name, "gate"} <= self.rows.get(case.size, {}).keys()]
        while left:
            case, name = left.pop(0)
            row, cv = self.rows[case.size][name], self.rows[case.size]["gate"]["levels"][0]["cv"]
            now = time.monotonic()
            until = now + max(self.begun + self.options.seconds - now, 0) / (len(left) + 1)
            row["levels"] = self.attempt(name, to_equal, self.tools[name], case, row["levels"][0], cv, self.options, until) or row["levels"]
            row["equal"] = min((l for l in row["levels"] if l["cv"] <= cv), key=lambda l: l["seconds"], default=None)
            print(f"{case.size} {name}: {row['levels'][0]['seconds']:.3g} s, cv {row['levels'][0]['cv']:.3%}; gate {cv:.3%}", file=sys.stderr, flush=True)

    def measure(self):
        """All that was measured, also where somebody ends it before its time."""
        signal.signal(signal.SIGTERM, ended)
        with contextlib.suppress(Ended):
            self.own()
        self.summarize()
        with contextlib.suppress(Ended):
            self.equal()
        return {"surface": self.options.surface, "repeats": self.options.repeats, "half_width": HALF_WIDTH, "seconds": time.monotonic() - self.begun,
                "missing": self.missing, "rows": self.rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surface", choices=TOOLS, default="c")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=320, help="begin nothing after this time")
    parser.add_argument("--only", help="3us, 30us or 1ms")
    parser.add_argument("--tools", help="names, separated by commas")
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin")
    parser.add_argument("--peers", type=Path, default=ROOT / "build/peers", help="programs and sources of the tools that are not installed")
    options = parser.parse_args()
    if options.repeats < 2:
        parser.error("a spread needs two repeats")
    options.bin, options.peers = options.bin.resolve(), options.peers.resolve()
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(options, scratch)
        try:
            result = Run(options, bench).measure()
        finally:
            bench.stop_device()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
