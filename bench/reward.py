#!/usr/bin/env python3
"""What does a reward cost beyond its kernel, and what is left when the service is killed?

    bench/reward.py [--bin build/bin] [--requests 4000] [--clients 64] [--judges CORES-2] [--seconds 400] [--json FILE]

One service on a fresh journal, and clients that each ask for one kernel at a time with klineage.reward, as a trainer does.  Kernels
are of tests/data/tasks/saxpy, checked and not timed: nearly all of them texts that nobody has seen (a constant changes; some are
wrong, some do not compile), one in five a repetition.  Phases:

  alone    a client for every two judges: nothing waits; how many requests fit into SECONDS follows from it
  crowd    CLIENTS at a time; in the middle the service is killed with SIGKILL and started again on the same journal
  known    CLIENTS at a time ask again for what was answered
  timed    one at a time against an opponent that does forty times the work: each has to be proven faster

`beyond`: what the client waits, less the wait for a judge and less the verdict's compiles and runs, both as the service says.  It is
the sum of `gate` (a judge's time beyond compiles and runs) and `service` (client, HTTP, journal, queue).  Requests under way at the kill are counted apart.  At the end the journal is counted: every kernel has one verdict, and every request
got the outcome that its kernel must have.  Exit status 1 when something was lost or judged twice.  Prints one JSON object."""
import argparse
import collections
import contextlib
import json
import os
import platform
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
from klineage.reward import Rewards  # noqa: E402

NAIVE = (ROOT / "tests/data/tasks/saxpy/naive.c").read_text()
REPEATED, WRONG, BROKEN = 0.2, 0.15, 0.05
WORTH = {"pass": 0.4, "wrong": 0.1, "no_compile": 0.0}


def kernel(n):
    """The n-th source, and the outcome that it must have."""
    kind = random.Random(n).random()
    if kind < BROKEN:
        return f"{NAIVE}\nno C at all {n}\n", "no_compile"
    if kind < BROKEN + WRONG:
        return NAIVE.replace("+ y[i]", f"+ y[i] + {n + 1}.0f"), "wrong"
    return f"{NAIVE}\nstatic const int variant = {n};\n", "pass"


class Service:
    def __init__(self, options, folder):
        self.options, self.folder, self.path = options, folder, f"{folder}/rewards.sock"
        self.log = open(folder / "service.log", "a")
        self.start()

    def start(self):
        env = {**os.environ, "KLINEAGE_TASKS": str(ROOT / "tests/data/tasks"), "KLINEAGE_CACHE": f"{self.folder}/cache"}
        words = [str(self.options.bin / "klineage"), "serve", "--reward", "--listen", f"unix:{self.path}", "--store", f"{self.folder}/journal.db",
                 "--judges", str(self.options.judges)]
        self.process = subprocess.Popen(words, env=env, stdout=self.log, stderr=self.log)
        until = time.monotonic() + 30
        while time.monotonic() < until and self.process.poll() is None:
            with contextlib.suppress(OSError):
                if self.client().request("GET", "/healthz")[0] == 200:
                    return
            time.sleep(0.05)
        sys.exit(f"the service did not start: {(self.folder / 'service.log').read_text()[-2000:]}")

    def client(self):
        return Rewards(f"unix:{self.path}", patience_s=self.options.seconds)

    def metrics(self):
        text = self.client().request("GET", "/metrics")[2]
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Clients:
    """`n` threads that ask for kernels of a list, each as soon as its last one was answered."""

    def __init__(self, service, n, numbers, until):
        self.service, self.numbers, self.until = service, collections.deque(numbers), until
        self.rows, self.failed, self.lock = [], [], threading.Lock()
        self.threads = [threading.Thread(target=self.ask, daemon=True) for _ in range(n)]

    def ask(self):
        client = self.service.client()
        while time.monotonic() < self.until:
            try:
                n = self.numbers.popleft()
            except IndexError:
                return
            source, outcome = kernel(n)
            begin = time.monotonic()
            try:
                answer, = client.ask([{"id": str(n), "task": "saxpy", "kernel": source, "check_only": True}])
            except Exception as why:  # nothing may be lost: told at the end
                self.failed.append(f"{n}: {why!r}")
                continue
            row = {"n": n, "begin": begin, "end": time.monotonic(), "answer": answer, "right": answer.get("outcome") == outcome and
                   answer["reward"] == WORTH[outcome]}
            with self.lock:
                self.rows.append(row)

    def run(self, meanwhile=None):
        begin = time.monotonic()
        for thread in self.threads:
            thread.start()
        while any(thread.is_alive() for thread in self.threads):
            if meanwhile:
                meanwhile(len(self.rows))
            time.sleep(0.02)
        self.seconds = time.monotonic() - begin
        return self

    def rate(self):
        return len(self.rows) / self.seconds


def percentiles(values):
    values = sorted(values)
    if len(values) < 2:
        return {"n": len(values)}
    cut = statistics.quantiles(values, n=1000, method="inclusive")
    return {"n": len(values), "p50_ms": 1e3 * cut[499], "p90_ms": 1e3 * cut[899], "p99_ms": 1e3 * cut[989], "most_ms": 1e3 * values[-1]}


def summary(clients, down=(0, 0)):
    """Of requests that were not under way while the service was down."""
    calm = [r for r in clients.rows if not (r["begin"] < down[1] and r["end"] > down[0])]
    fresh = [r for r in calm if "judge_ns" in r["answer"] and not r["answer"]["journaled"]]
    known = [r for r in calm if r["answer"].get("journaled")]

    def of(rows, *parts):
        return percentiles([sum(r["answer"][p] for p in parts) / 1e9 for r in rows])
    return {"requests": len(clients.rows), "seconds": clients.seconds, "per_second": clients.rate(),
            "failed": clients.failed[:5], "not_right": [r["answer"] for r in clients.rows if not r["right"]][:5],
            "during_restart": len(clients.rows) - len(calm),
            "beyond": percentiles([r["end"] - r["begin"] - (r["answer"]["wait_ns"] + r["answer"]["kernel_ns"]) / 1e9 for r in fresh]),
            "service": percentiles([r["end"] - r["begin"] - (r["answer"]["wait_ns"] + r["answer"]["judge_ns"]) / 1e9 for r in fresh]),
            "gate": percentiles([(r["answer"]["judge_ns"] - r["answer"]["kernel_ns"]) / 1e9 for r in fresh]),
            "kernel": of(fresh, "kernel_ns"), "wait": of(fresh, "wait_ns"),
            "whole": percentiles([r["end"] - r["begin"] for r in fresh]), "known": percentiles([r["end"] - r["begin"] for r in known])}


SLOW = NAIVE.replace("out[i] = a * x[i] + y[i]", "{ volatile float v = 0; for (int j = 0; j < 40; j++) v = a * x[i]; out[i] = v + y[i]; }")
TIMED = 12


def timed(service, until):
    """Outcomes, decisions and rewards of kernels that are timed."""
    client, rows = service.client(), []
    for n in range(TIMED):
        begin = time.monotonic()
        if begin > until:
            break
        answer, = client.ask([{"id": str(n), "task": "saxpy", "kernel": kernel(n)[0] if kernel(n)[1] == "pass" else NAIVE, "against": SLOW, "quick": True}])
        rows.append({"seconds": time.monotonic() - begin, **{k: answer.get(k) for k in ("outcome", "reward", "speedup", "why", "judge_ns", "kernel_ns", "journaled")}})
    return {"n": len(rows), "faster": sum((r["speedup"] or {}).get("call") == "faster" for r in rows), "rows": rows}


def with_repeats(first, n):
    """n numbers: new ones, and some that came before."""
    draw, numbers, new = random.Random(first), [], first
    for _ in range(n):
        if numbers and draw.random() < REPEATED:
            numbers.append(draw.choice(numbers))
        else:
            numbers.append(new)
            new += 1
    return numbers


class Killer:
    """Kills the service once, when `after` requests are answered."""

    def __init__(self, service, after):
        self.service, self.after, self.down, self.before = service, after, (0, 0), {}

    def __call__(self, done):
        if done < self.after or self.down[1]:
            return
        self.before = self.service.metrics()
        begin = time.monotonic()
        self.service.kill()
        self.service.start()
        self.down = (begin, time.monotonic() + 2)  # and the judges' start


def count(folder):
    with contextlib.closing(sqlite3.connect(folder / "journal.db")) as journal:
        rows = journal.execute("SELECT kernel, count(*) FROM verdict GROUP BY kernel").fetchall()
        open_batches, = journal.execute("SELECT count(*) FROM record WHERE kind = 'reward' AND name = 'open'").fetchone()
    return {"kernels": len(rows), "judged_twice": sum(n > 1 for _, n in rows), "open": open_batches}


def main():
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / "build/bin")
    parser.add_argument("--requests", type=int, default=4000, help="at most")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--judges", type=int, default=max(1, cores - 2))
    parser.add_argument("--seconds", type=float, default=400)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # that the service was away is what is tested
    until = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        service = Service(options, folder)
        first = Clients(service, options.judges, range(-1 - options.judges, -1), until).run()  # each judge comes up
        half = max(1, options.judges // 2)
        quiet = Clients(service, half, range(1000000, 1000000 + options.requests // 10), time.monotonic() + options.seconds / 5).run()
        most = int(quiet.rate() / half * options.judges * (until - time.monotonic()) / 2)  # with room for a slower second half
        numbers = with_repeats(0, min(options.requests, most))
        killer = Killer(service, len(numbers) // 2)
        crowd = Clients(service, options.clients, numbers, until).run(killer)
        known = Clients(service, options.clients, numbers, until).run()
        found = count(folder)
        raced = timed(service, until)
        after, status = service.metrics(), service.stop()
        log = (folder / "service.log").read_text()
    asked = {r["n"] for c in (first, quiet, crowd, known) for r in c.rows}
    killed = bool(killer.down[1])
    result = {"cores": cores, "machine": platform.machine(), "judges": options.judges, "clients": options.clients, "killed": killed,
              "alone": summary(quiet), "crowd": summary(crowd, killer.down), "known": summary(known), "timed": raced, "journal": found, "asked": len(asked),
              "unanswered": len(crowd.numbers) + len(crowd.failed) + len(known.failed) + len(quiet.failed),
              "wrong_answers": sum(not r["right"] for c in (quiet, crowd, known) for r in c.rows), "status": status,
              "metrics_before_kill": {k: v for k, v in killer.before.items() if "bucket" not in k},
              "metrics": {k: v for k, v in after.items() if "bucket" not in k}, "log": log[-1000:]}
    text = json.dumps(result, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return int(bool(not killed or result["unanswered"] or result["wrong_answers"] or found["judged_twice"] or found["open"] or
                    found["kernels"] != len(asked) or status))


if __name__ == "__main__":
    sys.exit(main())
