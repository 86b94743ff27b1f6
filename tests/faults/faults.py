#!/usr/bin/env python3
"""faults.py - klineage where the operating system, a clock, a file or a model's server fails.

usage: faults.py --list                             names of the tests, one a line (CMake registers each)
       faults.py KLINEAGE SOURCE_DIR NAME           run one; exit status 0 passed, 77 skipped (and why), else failed

FAULT_LIBRARY names the library made of fault.c.  SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import shutil
import struct
import sys

import cluster
import kill
import money
import world
from kill import preload
from world import EXIT, LOOP, Skip, files, flow, rows

HERE = pathlib.Path(__file__).resolve().parent
CALLS = ("write", "fsync", "rename", "mmap", "fork", "open", "read")


# ---- at the seam -----------------------------------------------------------------------------------------------------------


def cases(command):
    lines = [line.split() for line in (HERE / "cases.txt").read_text().splitlines() if line.strip() and not line.startswith("#")]
    found = [(call, fault, most) for name, call, fault, most in lines if name == command]
    assert found, f"cases.txt has nothing for {command}"
    return found


def count(w, name):
    """How often a command makes each call."""
    at = w.trial("counted")
    w.run(name, at, env=preload(at)).is_("ok")
    return dict(zip(CALLS, struct.unpack(f"{len(CALLS)}Q", (at / "counts.tmp").read_bytes())))


def points(n, most):
    """At most so many numbers from 1 to n, the first and the last among them; of them one in KLINEAGE_TEST_SHARE."""
    found = range(1, n + 1) if most == "all" or n <= int(most) else sorted({1 + round(i * (n - 1) / (int(most) - 1)) for i in range(int(most))})
    return sorted({*found[::int(os.environ.get("KLINEAGE_TEST_SHARE", "1"))], *found[-1:]})


def check_end(w, name, answer, what):
    """It ended by itself, and either it says what failed or it worked all the same."""
    if name == "library" and answer.status == EXIT["no"]:
        return  # a card that cannot be read is what it is there to find
    assert answer.status in (EXIT["ok"], EXIT["usage"], EXIT["no_device"], EXIT["no_isolation"]), f"{what}: {answer}"
    for never in ("klineage: bug:", "Sanitizer"):
        assert never not in answer.err, f"{what}: {answer}"
    if answer.status != EXIT["ok"]:
        assert "error" in answer.err, f"{what}: nothing was said: {answer}"


def is_lineage(now):
    """A walk that cannot go on hands over what it has: shorter than the reference, and whole."""
    return isinstance(now, dict) and now.get("schema") == "klineage/lineage" and "how" in now["termination"]


def check_files(w, name, at, before, what):
    """Each file is what it was, or what it becomes; nothing in between."""
    after, becomes = files(at), w.references[name]["files"]
    for path, now in after.items():
        assert now in (before.get(path), becomes.get(path)) or is_lineage(now), f"{what}: {path} is torn or new"


def one(w, name, call, fault, n):
    what = f"{name}, {call} {n} fails with {fault}"
    at = w.trial("t")
    before = files(at)
    sticky = "+" if fault.endswith("+") else ""
    answer = w.run(name, at, env=preload(at, FAULT=f"{call}:{n}{sticky}:{fault.rstrip('+')}"))
    check_end(w, name, answer, what)
    check_files(w, name, at, before, what)
    w.whole_journal(at)
    if answer.status == EXIT["ok"]:
        differs = w.differences(name, at, answer)
        assert not differs, f"{what}, it says nothing, and yet: {differs}\n{answer}"
    again = w.run(name, at)
    assert again.status == EXIT["ok"], f"{what}; and then the same command: {again}"
    differs = w.differences(name, at, again)
    assert not differs, f"{what}; the same command then leaves something else: {differs}"
    return answer.status


def seam(p, name):
    w = world.World(p, only=[name])
    n, done, failed = count(w, name), 0, 0
    for call, fault, most in cases(name):
        for at in points(n[call], most):
            failed += one(w, name, call, fault, at) != EXIT["ok"]
            done += 1
    print(f"{name}: {done} faults, {failed} of them ended the command; calls: {n}")
    assert failed or name == "library", "no fault was felt at all"


def seam_of(name):
    return lambda p: seam(p, name)


# ---- clocks ----------------------------------------------------------------------------------------------------------------


def test_clock_jumps(p):
    """The time of day decides nothing: the same rows, whatever it says."""
    w = world.World(p, only=LOOP)
    for name in LOOP:
        for how in ("back", "ahead", "wild"):
            at = w.trial("t")
            answer = w.run(name, at, env=preload(at, FAULT_CLOCK=how)).is_("ok")
            differs = w.differences(name, at, answer)
            assert not differs, f"{name} with a clock that goes {how}: {differs}"


# ---- a journal that is damaged ---------------------------------------------------------------------------------------------


def contents(store):
    return {table: rows(store, f"SELECT count(*) FROM {table}")[0][0] for table in ("verdict", "effect", "charge", "step", "blob")}


def damage(path, how):
    size, page = path.stat().st_size, 4096
    with open(path, "r+b") as f:
        if how == "truncated":
            f.truncate(size - 2 * page)
        else:  # every seventh page, but not the first: it says whose file this is
            for at in range(3 * page, size, 7 * page):
                f.seek(at)
                f.write(b"\xa5" * page)


def test_a_damaged_journal_is_not_thrown_away(p):
    """What is said leads to a journal in which the ledger and the answers are, and nothing is paid for twice."""
    if not shutil.which("sqlite3"):
        raise Skip("there is no sqlite3")
    w = world.World(p, only=["optimize"])
    for how in ("truncated", "overwritten"):
        at = w.trial("t")
        w.run("optimize", at).is_("ok")
        before = contents(at / "s.db")
        damage(at / "s.db", how)
        answer = w.run("optimize", at).is_("usage", "damaged", "it contains the ledger and paid answers")
        assert "measured again" not in answer.err and "move it away" not in answer.err, str(answer)
        hint = next(line for line in answer.err.splitlines() if line.startswith("hint: "))
        command = hint[hint.index("(sqlite3 "):]
        saved = hint[hint.index("--store '") + 9:hint.index("': (")]
        flow.subprocess.run(["sh", "-c", command], cwd=at, capture_output=True, text=True, timeout=60)
        p.run("cost", "--store", saved, cwd=at).is_("ok")  # it is a journal of ours
        after = contents(at / saved)
        print(f"{how}: saved {after} of {before}")
        assert all(0 <= after[table] <= before[table] for table in before), (how, after)
        assert sum(after.values()) >= sum(before.values()) / 4, f"{how}: the hint saves next to nothing: {after} of {before}"


# ---- children --------------------------------------------------------------------------------------------------------------


def test_nothing_outlives_a_killed_experiment(p):
    kill.nothing_is_left(p)


def test_killed_anywhere(p):
    kill.killed(world.World(p, only=LOOP), 60, 1, float(os.environ.get("FAULT_SECONDS", 40)))


# ---- a server that breaks off ----------------------------------------------------------------------------------------------


def test_money_anthropic(p):
    money.broken_streams(p, "anthropic:claude-haiku-5-5", 3)


def test_money_openai(p):
    money.broken_streams(p, "openai:gpt-6-luna", 5)


def test_money_without_usage(p):
    money.without_usage(p)


def test_money_two_processes(p):
    money.two_processes(p)


# ---- several processes and hosts -------------------------------------------------------------------------------------------


def test_cluster_database(p):
    cluster.with_a_database(p)


def test_cluster_slurm(p):
    cluster.with_slurm(p)


# ---- running ---------------------------------------------------------------------------------------------------------------


def tests():
    names = dict.fromkeys(line.split()[0] for line in (HERE / "cases.txt").read_text().splitlines() if line.strip() and not line.startswith("#"))
    found = {f"seam_{name}": seam_of(name) for name in names}
    found.update({name[5:]: f for name, f in globals().items() if name.startswith("test_")})
    return found


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
