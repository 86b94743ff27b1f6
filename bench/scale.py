#!/usr/bin/env python3
"""The same experiment on 1, 4 and 16 workers of a spool: are the tables the same, and what does a worker more bring?

    bench/scale.py [--workers 16,4,1] [--tasks A,B,...] [--trials 1] [--proposals 40] [--seconds 1500] [--bin build/bin] [--out FILE]

TRIALS tracks a task (all that have a plain kernel in C) of PROPOSALS independent proposals each, from `mutate:1`, which costs nothing
and answers the same request alike.  The start kernels are judged once, before, since their times are in what the model is asked; all
runs begin with these verdicts in their spool.  With more than one trial tracks share jobs, and fewer workers have work.  Else each has a fresh journal, spool and cache, and each worker a core of its own while there are enough.
A run that SECONDS cut off counts for what it came to.

The table is what does not hang on a clock: of each track its proposals in order, each with its kernel and whether it compiled, was
right, or was refused.  `differ` counts the rows on which two runs disagree, over those that both have.  Whether a proposal was
*faster* is a measurement, and two measurements of one thing differ: the calls that do are counted as `calls_differ`.

Prints one JSON object; `times` of it is what bench/scale_model.py is calibrated from."""
import argparse
import itertools
import json
import os
import resource
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESERVED = 0.25  # of the time, for each run that is still to come
TASKS = sorted(path.parent.name for path in (ROOT / "tasks").glob("*/naive.c"))
FILE = """schema: klineage/experiment
version: 1
title: The same experiment on any number of workers
model: mutate:1
trials: {trials}
max-steps: {proposals}
patience: {proposals}
quick: true
policies: [bestofn]
workloads:
{workloads}
"""
UNTIMED = {"unstable": "pass", "pass": "pass"}  # an unstable kernel passed every check


def plan(options, folder):
    path = folder / "experiment.yaml"
    lines = "\n".join(f"  - {{task: {task}, workload: tiny}}" for task in options.tasks)
    path.write_text(FILE.format(trials=options.trials, proposals=options.proposals, workloads=lines))
    return path


def start_workers(options, folder, n):
    cores = sorted(os.sched_getaffinity(0), reverse=True)
    for i in range(n):
        log = open(folder / f"worker{i}.log", "w")
        core = cores[i % len(cores)]
        yield subprocess.Popen([options.bin / "klineage-worker", "--spool", folder / "spool", "--stay", "3600"], stdout=log, stderr=log,
                               preexec_fn=lambda: os.sched_setaffinity(0, {core}), cwd=folder)


def command(options, folder, *more):
    """What is typed, and its environment."""
    words = [options.bin / "klineage", "experiment", plan(options, folder), "--spool", folder / "spool", "--store", folder / "journal.db",
             "--jobs", str(len(options.tasks) * options.trials), "--json", "--quiet", *more]
    return [str(w) for w in words], dict(os.environ, KLINEAGE_CACHE=str(folder / "cache"))


def judge_starts(options, folder):
    """A spool in which the start kernels are done, each with a time that settled, and nothing else."""
    words, environment = command(options, folder, "--once")
    spool = folder / "spool"
    for _ in range(30):
        asked = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True)
        if asked.returncode != 11:
            sys.exit(f"nothing is pending: {asked.returncode}\n{asked.stderr[-2000:]}")
        for job in (spool / "todo").iterdir():  # first proposals are for the runs
            if not json.loads((job / "job.json").read_text())["path"].endswith("/naive.c"):
                shutil.rmtree(job)
        subprocess.run([options.bin / "klineage-worker", "--spool", spool], check=True, capture_output=True, env=environment)
        unstable = [job for job in (spool / "done").iterdir() if json.loads((job / "verdict.json").read_text())["outcome"] == "unstable"]
        if not unstable:
            return spool
        print(f"{len(unstable)} start kernels have no time that settles yet", file=sys.stderr, flush=True)
        for job in unstable:
            shutil.rmtree(job)
        for journal in folder.glob("journal.db*"):
            journal.unlink()
    sys.exit("the start kernels have no time that settles: this machine is too busy")


def run(options, starts, n, seconds):
    """One experiment on `n` workers; what there is of it after `seconds`."""
    with tempfile.TemporaryDirectory(prefix="klineage-scale-") as name:
        folder = Path(name)
        shutil.copytree(starts, folder / "spool", ignore=shutil.ignore_patterns("cache"))
        (folder / "spool" / "cache").mkdir()
        known = {p.name for p in (folder / "spool" / "done").iterdir()}
        words, environment = command(options, folder)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.time()
        with open(folder / "controller.log", "w") as log:
            controller = subprocess.Popen(words, stdout=log, stderr=log, env=environment, cwd=ROOT)
            workers = list(start_workers(options, folder, n))
            try:
                code = controller.wait(seconds)
            except subprocess.TimeoutExpired:
                controller.send_signal(signal.SIGINT)
                code = controller.wait(120)
        wall, after = time.time() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        for w in workers:
            w.terminate()
        for w in workers:
            w.wait()
        if code not in (0, 130):
            sys.exit(f"the experiment ended with {code}:\n{(folder / 'controller.log').read_text()[-3000:]}")
        return collect(folder, known, n, wall, code == 0, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def jobs_of(folder, known):
    """Of each job that was done here: when it was put and answered, and the gate's own time."""
    for done in (folder / "spool" / "done").iterdir():
        verdict = done / "verdict.json"
        if verdict.exists() and done.name not in known:
            yield done.name, (done / "job.json").stat().st_mtime, verdict.stat().st_mtime, json.loads(verdict.read_text())["total_ns"] / 1e9


def rounded(values):
    return [round(v, 4) for v in values]


def middle(values):
    return {"median": round(statistics.median(values), 4), "mean": round(statistics.fmean(values), 4)} if values else None


def thinking(answers):
    """How long a track took from the last of what it had waited for to the next job: what another track had asked before is no job of its own."""
    for earlier, (put, _, _) in zip(itertools.accumulate((answered for _, answered, _ in answers), max), answers[1:]):
        if put > earlier:
            yield put - earlier


def collect(folder, known, n, wall, whole, controller_s):
    db = sqlite3.connect(folder / "journal.db")
    jobs = {i: (put, answered, gate) for i, put, answered, gate in jobs_of(folder, known)}
    table, calls = {}, {}
    for track, at, text in db.execute("SELECT track, n, json FROM step ORDER BY track, n"):
        step = json.loads(text)
        if step["phase"] == "end":
            continue  # which of them is the best is a measurement
        table[f"{track} {at}"] = [step["kernel"], UNTIMED.get(step["outcome"], step["outcome"])]
        calls[f"{track} {at}"] = step["call"]
    turnarounds, judged = [], 0
    for _, rows in itertools.groupby(db.execute("SELECT track, answer FROM effect WHERE kind = 'judge' ORDER BY track, rowid"), lambda r: r[0]):
        answers = [jobs[answer] for _, answer in rows if answer in jobs]
        judged += len(answers)
        turnarounds += thinking(answers)
    if not jobs:
        sys.exit(f"{n} workers judged nothing in {wall:.0f} s")
    first, last = min(put for put, _, _ in jobs.values()), max(answered for _, answered, _ in jobs.values())
    gate = sorted(seconds for _, _, seconds in jobs.values())
    charges = db.execute("SELECT count(*), count(DISTINCT effect) FROM charge").fetchone()
    size = lambda column, where: db.execute(f"SELECT coalesce(sum(length({column})), 0) FROM {where}").fetchone()[0]
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return {"workers": n, "whole": whole, "wall_s": round(wall, 2), "proposals": sum(not k.endswith(" 0") for k in table), "verdicts": len(jobs),
            "judged": judged, "verdicts_per_s": round(len(jobs) / (last - first), 4), "busy": round(sum(gate) / (n * (last - first)), 4),
            "children_s": round(controller_s, 2), "charges": charges[0], "charged_twice": charges[0] - charges[1],
            "journal_bytes": (folder / "journal.db").stat().st_size, "verdict_bytes": size("packed", "verdict"), "blob_bytes": size("text", "blob"),
            "spool_bytes": sum(p.stat().st_size for p in (folder / "spool").rglob("*") if p.is_file()),
            "outcomes": {o: sum(row[1] == o for row in table.values()) for o in sorted({row[1] for row in table.values()})},
            "gate_s": middle(gate), "turnaround_s": middle(turnarounds),
            "table": table, "calls": calls, "times": {"gate_s": rounded(gate), "turnaround_s": rounded(sorted(turnarounds))}}


def compare(a, b):
    both = sorted(a["table"].keys() & b["table"].keys())
    return {"workers": [a["workers"], b["workers"]], "rows": len(both), "differ": sum(a["table"][k] != b["table"][k] for k in both),
            "calls_differ": sum(a["calls"][k] != b["calls"][k] for k in both)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="16,4,1")
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=list(TASKS))
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--proposals", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=1500)
    parser.add_argument("--bin", type=Path, default=ROOT / "build" / "bin")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    counts, runs, end = [int(word) for word in options.workers.split(",")], [], time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="klineage-scale-") as first:
        starts = judge_starts(options, Path(first))
        for i, n in enumerate(counts):
            for_others = RESERVED * options.seconds * (len(counts) - i - 1)
            runs.append(run(options, starts, n, max(20, end - time.monotonic() - for_others)))
            print(f"{n} workers: {runs[-1]['verdicts']} verdicts in {runs[-1]['wall_s']} s", file=sys.stderr, flush=True)
    pairs = [compare(a, b) for a, b in itertools.combinations(runs, 2)]
    most = max(runs, key=lambda r: len(r["table"]))
    result = {"command": f"bench/scale.py --workers {options.workers} --tasks {','.join(options.tasks)} --trials {options.trials} --proposals {options.proposals}",
              "cores": len(os.sched_getaffinity(0)), "compare": pairs,
              "runs": [{k: v for k, v in r.items() if k not in ("table", "calls", "times")} for r in runs],
              "times": min(runs, key=lambda r: r["workers"])["times"],
              "times_most_workers": max(runs, key=lambda r: r["workers"])["times"],
              "table": [[key, kernel[:16], outcome] for key, (kernel, outcome) in sorted(most["table"].items())]}
    text = json.dumps(result)
    if options.out:
        options.out.write_text(text + "\n")
    print(json.dumps({k: v for k, v in result.items() if k not in ("table", "times", "times_most_workers")}))
    return 1 if any(p["differ"] for p in pairs) else 0


if __name__ == "__main__":
    sys.exit(main())
