#!/usr/bin/env python3
"""kill.py - commands that are killed at random points and typed again: rows, ledger and files are then as if nobody had touched them.

usage: kill.py KLINEAGE SOURCE_DIR [--count N] [--seed S] [--seconds S]

Half of the kills come at a moment of the clock, half at the n-th call that the command makes to the operating system (fault.c), so that the places
between two writes are met as well.  walk, lift, admit, optimize and experiment take turns; models are scripts, verdicts are in the journal.
FAULT_LIBRARY names the library made of fault.c.  SPDX-License-Identifier: Apache-2.0
"""
import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import struct
import sys
import tempfile
import time

import world
from world import LOOP, Skip, flow, rows

TABLES = ("effect", "charge", "step", "record", "blob")
COMPILERS = {"gcc", "cc", "clang", "cc1", "as", "collect2", "ld", "g++", "c++"}


def reached(at):
    """Where a kill came: how many rows there are of each kind."""
    if not (at / "s.db").exists():
        return ()
    try:
        return tuple(rows(at / "s.db", f"SELECT count(*) FROM {table}")[0][0] for table in TABLES)
    except world.sqlite3.Error as why:
        raise AssertionError(f"a killed command left a journal that does not open: {why}")


def preload(at, **fault):
    library = os.environ.get("FAULT_LIBRARY")
    if not library or not pathlib.Path(library).exists():
        raise Skip("FAULT_LIBRARY names no library")
    return {"LD_PRELOAD": library, "FAULT_PROGRAM": "klineage", "FAULT_COUNTS": str(at / "counts.tmp"), **fault}


def calls_of(w, name):
    at = w.trial("counted")
    w.run(name, at, env=preload(at)).is_("ok")
    return sum(struct.unpack("7Q", (at / "counts.tmp").read_bytes()))


def start(w, name, at, env=None):
    return flow.subprocess.Popen([w.p.program, *w.words[name]], env={**w.p.env, **(env or {})}, cwd=at, stdin=flow.subprocess.DEVNULL,
                                 stdout=flow.subprocess.DEVNULL, stderr=flow.subprocess.DEVNULL, start_new_session=True)


def kill_once(w, name, at, chance, calls):
    """At some moment, or at some call."""
    if chance.random() < 0.5:
        process = start(w, name, at)
        time.sleep(chance.uniform(0, 1.1 * w.took[name]))
        process.kill()
    else:
        (at / "counts.tmp").unlink(missing_ok=True)
        process = start(w, name, at, preload(at, FAULT=f"any:{chance.randint(1, calls)}:kill"))
    process.wait(120)
    return process.returncode == -signal.SIGKILL


def check(w, name, at, what):
    w.whole_journal(at)
    answer = w.run(name, at)
    assert answer.status == world.EXIT["ok"], f"{what}: the same command then: {answer}"
    differs = w.differences(name, at, answer)
    assert not differs, f"{what}: the same command then leaves something else: {differs}"


def killed(w, n, seed, seconds=None, keep_going=False):
    chance, end = random.Random(seed), time.monotonic() + (seconds or 1e9)
    calls = {name: calls_of(w, name) for name in LOOP}
    places, kills, failures, done = collections.defaultdict(set), collections.Counter(), [], 0
    while done < n and time.monotonic() < end:
        name = LOOP[done % len(LOOP)]
        at = w.trial("t")
        for _ in range(chance.choice((1, 1, 2, 3))):
            kills[name] += kill_once(w, name, at, chance, calls[name])
            places[name].add(reached(at))
        try:
            check(w, name, at, f"{name}, kill {done} of seed {seed}")
        except AssertionError as why:
            failures.append(str(why))
            if not keep_going:
                raise
            print(why, flush=True)
        done += 1
    for name in LOOP:
        print(f"{name}: {kills[name]} kills, in {len(places[name])} places of the journal, of {calls[name]} calls")
    print(f"{done} of {n} command lines, {sum(kills.values())} kills, {len(failures)} failures, seed {seed}")
    assert done >= min(n, 2 * len(LOOP)), "there was no time for enough of them"
    assert sum(kills.values()) > done // 4, "most commands had ended before they were killed"
    return failures


# ---- nobody is left --------------------------------------------------------------------------------------------------------


def alive(session):
    """Names of the processes of a session that still run, by number."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "stat").read_text()
        except OSError:
            continue
        name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        if int(rest[3]) == session and rest[0] not in "ZX":
            found[int(text.split()[0])] = name
    return found


def nothing_is_left(p):
    """A parallel experiment that compiles and checks is killed at several moments; a second later nobody of it is alive, and nobody is in the way."""
    w, seen = world.World(p, only=[]), collections.Counter()
    at, chance = w.trial("t"), random.Random(5)
    fresh = (*w.words["experiment"][:-1], "fresh.db")
    env = {"KLINEAGE_CACHE": str(at / "cache")}
    for n in range(8):
        said = open(at / "said.txt", "wb")
        process = flow.subprocess.Popen([p.program, *fresh], env={**p.env, **env}, cwd=at, stdin=flow.subprocess.DEVNULL, stdout=said, stderr=said,
                                        start_new_session=True)
        until = time.monotonic() + chance.uniform(0.1, 1.5)
        while time.monotonic() < until:
            seen.update(set(alive(process.pid).values()))
            time.sleep(0.02)
        below = alive(process.pid)
        process.kill()
        process.wait(20)
        busy = max(1.0, os.getloadavg()[0] / os.cpu_count())  # a dying process wants a processor too
        until = time.monotonic() + busy
        while alive(process.pid) and time.monotonic() < until:
            time.sleep(0.01)
        left = alive(process.pid)
        assert not left, f"round {n}: {left} of {below} outlived the experiment by {busy:.1f} s"
        text = (at / "said.txt").read_text(errors="replace")
        assert "is running this track" not in text, f"round {n}: {text}"
    assert seen["klineage-worke"] or set(seen) & COMPILERS, f"only {dict(seen)} were met"
    print("met:", ", ".join(f"{name} {times}" for name, times in seen.most_common()))


# ---- by hand ---------------------------------------------------------------------------------------------------------------


def main():
    o = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    o.add_argument("program", type=pathlib.Path)
    o.add_argument("source", type=pathlib.Path)
    o.add_argument("--count", type=int, default=1000)
    o.add_argument("--seed", type=int, default=1)
    o.add_argument("--seconds", type=float)
    o = o.parse_args()
    folder = tempfile.mkdtemp(prefix="klineage-kill-")
    try:
        w = world.make(o.program.resolve(), o.source.resolve(), folder, LOOP)
        return 1 if killed(w, o.count, o.seed, o.seconds, keep_going=True) else 0
    except Skip as why:
        print(f"SKIPPED: {why}")
        return 77
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
