#!/usr/bin/env python3
"""world.py - what the fault tests share: every command that works on a journal, with models that are scripts and a journal that knows the verdicts.

A World is made once: its commands were run to their end, so that each has a reference.  A Trial is a fresh copy of the folder that a command begins
with; what it left is compared with the reference, measured times aside.  SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import sqlite3
import sys
import time

FLOW = pathlib.Path(__file__).resolve().parent.parent / "flow"
sys.path.insert(0, str(FLOW))
import flow  # noqa: E402
import loop_flow  # noqa: E402
from flow import EXIT, Place, Skip  # noqa: E402
from loop_place import (DONE, FAST, GOOD, HAIKU, KEY, NOTHING, SESSION, TASK, WRONG, keep_verdicts_alone, kept, recording, rows, serving,  # noqa: E402
                        walk_script, whole)

PRICED = ("--priced-as", "claude-haiku-5-5", "--budget", "0.05")
STORE = ("--store", "s.db")
LOOP = ("walk", "lift", "admit", "optimize", "experiment")  # those that ask a model
FIRST = "first"  # one of them, typed for the first time
TIMES = ("wall_ns", "created", "written", "seconds")


def settled(verdict):
    """The same verdict as a quiet machine would have given it.  What is tested here is what becomes of verdicts, not how times settle."""
    verdict.update(outcome="pass", stage="done", why="")
    for race in verdict["time"]["vs"]:
        call = "faster" if race["low"] > 1.01 else "slower" if race["high"] < 0.99 else "same"
        race.update(stable=True, bimodal=False, call=call, floor=0.002, aa_low=0.999, aa_high=1.001)
    return verdict


def settle_times(p, store):
    """A row that is given its text as it is, unpacked, is one that any journal may hold."""
    with contextlib.closing(sqlite3.connect(store)) as journal, journal:
        for (key,) in journal.execute("SELECT key FROM verdict WHERE outcome = 'unstable'").fetchall():
            verdict = p.run("verdict", "show", key, "--json", "--store", store).is_("ok").json()
            journal.execute("UPDATE verdict SET outcome = 'pass', json = ?, packed = NULL WHERE key = ?", (json.dumps(settled(verdict)), key))


class World:
    """`p`: a Place.  `at`: the folder that every command begins with; `words`: the commands, as they are typed there."""

    def __init__(self, p, only=None):
        self.p, self.at = p, p.folder / "begin"
        self.at.mkdir()
        p.env["KLINEAGE_TASKS"] = f"{self.at}"
        p.env["XDG_CONFIG_HOME"] = str(p.folder / "config")
        self.words, self.references, self.took = {}, {}, {}
        self.begin()
        for name in self.words if only is None else only:
            self.refer(name)

    def begin(self):
        """The folder to begin with, from the cache of this program if it was made before: its verdicts are measured."""
        cache = pathlib.Path(self.p.env["KLINEAGE_CACHE"])
        cache.mkdir(parents=True, exist_ok=True)
        program = pathlib.Path(self.p.program)
        of = hashlib.sha256(b"".join(f.read_bytes() for f in (program, program.parent / "klineage-worker", pathlib.Path(__file__)))).hexdigest()[:16]
        ready = cache / f"faults-{of}"
        with open(cache / "faults.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not ready.exists():
                for old in cache.glob("faults-*"):
                    shutil.rmtree(old)
                self.write()
                self.settle()
                (self.at / "words.json").write_text(json.dumps(self.words))
                shutil.copytree(self.at, cache / "faults.new")
                os.rename(cache / "faults.new", ready)
        shutil.rmtree(self.at)
        shutil.copytree(ready, self.at)
        self.words = json.loads((self.at / "words.json").read_text())

    def write(self):
        """Tasks, kernels, scripts; the cards that admit takes are lifted here, and every command is run once for its verdicts."""
        for task in loop_flow.two_kinds(self.at).iterdir():
            shutil.move(task, self.at)
        (self.at / "tasks").rmdir()
        (self.at / "fast.c").write_text(FAST)
        (self.at / "x.yaml").write_text("schema: klineage/experiment\nversion: 1\nbudget: 0.05\nquick: true\n"
                                        "policies: [generate, {policy: bestofn, name: some, max-steps: 2}]\nworkloads: [running]\ntrials: 2\n")
        answers = {f"running/generate/{trial}": [NOTHING, GOOD, DONE] for trial in (1, 2)}
        answers.update({f"running/some/{trial}": [GOOD, WRONG] for trial in (1, 2)})
        self.script("experiment.jsonl", {f"{track}/generate/{i}": text for track, texts in answers.items() for i, text in enumerate(texts)})
        self.script("optimize.jsonl", {f"running/generate/1/generate/{i}": text for i, text in enumerate(SESSION)})
        shutil.move(walk_script(self.p)[7:], self.at / "walk.jsonl")
        quick = ("--quick", *STORE)
        self.words = {
            "verdicts": ("verdict", "list", "--json", *STORE),
            "gate": ("gate", "running", "fast.c", "--json", *quick),
            "check": ("gate", "running", "fast.c", "--check-only", "--json", "--store", "fresh.db"),
            "walk": ("walk", "running", "fast.c", "--model", "replay:walk.jsonl", "--out", "l.json", *PRICED, *quick),
            "optimize": ("optimize", "running", "--policy", "generate", "--model", "replay:optimize.jsonl", "--out", "best.c", *PRICED, *quick),
            "experiment": ("experiment", "x.yaml", "--model", "replay:experiment.jsonl", "--jobs", "2", "--out", "out",
                           "--priced-as", "claude-haiku-5-5", *STORE),
        }

    def script(self, name, texts):
        lines = [dict(schema="klineage/recording", version=1, model="claude-haiku-5-5", command="test", note="")]
        lines += [dict(slot=slot, text=text) for slot, text in texts.items()]
        (self.at / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run(self, name, at, env=None, limit=120):
        """`check` compiles, in a cache of its own."""
        own = {"KLINEAGE_CACHE": str(at / "cache")} if name == "check" else {}
        return self.p.run(*self.words[name], cwd=at, env={**own, **(env or {})}, limit=limit)

    def verdicts(self):
        store = self.at / "s.db"
        return rows(store, "SELECT count(*) FROM verdict")[0][0] if store.exists() else 0

    def calm(self, name):
        """Until the command measures nothing that the journal does not know."""
        for _ in range(8):
            if self.verdicts():
                keep_verdicts_alone(self.at / "s.db")
            known = self.verdicts()
            answer = self.run(name, self.at)
            settle_times(self.p, self.at / "s.db")
            if answer.status == EXIT["ok"] and known and self.verdicts() == known:
                return
        raise AssertionError(f"{name} measures again and again, or does not work by itself: {answer}")

    def settle(self):
        """Until the journal knows every verdict; then it is emptied of everything else."""
        key = {"ANTHROPIC_API_KEY": KEY}
        for name in ("gate", "walk"):
            self.calm(name)
        lift, admit = ("lift", "l.json", "l.json", "--library", "library", *STORE), (*loop_flow.ADMIT, *STORE)
        with serving(self.p, [loop_flow.CARD]):
            self.p.run(*lift, "--model", HAIKU, cwd=self.at, env=key, limit=230).is_("ok")
        self.record("lift")
        card = next((self.at / "library/lifted").iterdir()).name
        shutil.copytree(self.at / "library", self.at / "lifted-library")
        places = [f"admit/{card}/materialize starts/{task}/c/1-other.c" for task in ("running", "summing")]
        self.script("admit.jsonl", {f"{place}{arm}/{i}": text for place in places for arm, text in (("", whole(FAST)), (" none", loop_flow.DONE)) for i in range(4)})
        shutil.rmtree(self.at / "library")
        self.words["lift"] = ("lift", "l.json", "l.json", "--library", "new-library", "--model", "replay:lift.jsonl", *PRICED, *STORE)
        self.words["admit"] = ("admit", card, *(w if w != "library" else "lifted-library" for w in loop_flow.ADMIT), "--model", "replay:admit.jsonl",
                               "--priced-as", "claude-haiku-5-5", *STORE)
        lineage = json.loads((self.at / "l.json").read_text())
        library = self.p.folder / "library"
        shutil.copytree(self.at / "lifted-library", library)
        for name in ("admit", "optimize", "experiment"):
            self.calm(name)
        keep_verdicts_alone(self.at / "s.db")
        shutil.rmtree(self.at / "lifted-library")
        shutil.move(library, self.at / "lifted-library")
        for leftover in ("best.c", "out"):
            path = self.at / leftover
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        shutil.move(self.at / "l.json", self.p.folder / "l.json")
        shutil.copy(self.p.folder / "l.json", self.at / "walked.json")
        self.words["lift"] = tuple(w if w != "l.json" else "walked.json" for w in self.words["lift"])
        self.look(lineage)

    def look(self, lineage):
        """Commands that read what others left."""
        filled = self.p.folder / "filled.db"
        shutil.copy(self.at / "s.db", filled)
        self.p.run(*self.words["walk"][:-1], filled, cwd=self.at).is_("ok")
        (self.at / "l.json").unlink()
        self.begun()
        journal = sqlite3.connect(filled)
        journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        journal.close()
        shutil.move(filled, self.at / "filled.db")
        of = ("--store", "filled.db")
        self.words["report"] = ("report", lineage["run"], "--out", "page.html", *of)
        self.words["export"] = ("lineage", "export", lineage["id"], "--out", "exported.json", *of)
        self.words["library"] = ("library", "check", "--library", "lifted-library", "--json")
        self.words["verdicts"] = ("verdict", "list", "--json", *of)

    def begun(self):
        """Of LOOP the journal knows that it was begun, and no more: a command that is typed for the first time looks how quiet the machine is, for
        most of a second that is the machine's alone.  FIRST does, so that its faults are met too."""
        shutil.copy(self.at / "s.db", self.at / "first.db")
        self.words[FIRST] = (*self.words["optimize"][:-1], "first.db")
        at = self.trial("begun")
        for name in LOOP:
            assert self.run(name, at).status == EXIT["ok"], name
        keep_verdicts_alone(at / "s.db", and_runs=True)
        shutil.copy(at / "s.db", self.at / "s.db")
        shutil.rmtree(at)

    def record(self, name):
        runs = json.loads(self.p.run("run", "list", "--json", *STORE, cwd=self.at).is_("ok").out)["runs"]
        run = next(r["id"] for r in runs if r["command"] == name)
        self.p.run("run", "record", run, "--out", f"{name}.jsonl", *STORE, cwd=self.at).is_("ok")

    # ---- references and trials ------------------------------------------------------------------------------------------

    def refer(self, name):
        self.run(name, self.trial("reference"))  # files and libraries come into memory
        at, began = self.trial("reference"), time.monotonic()
        answer = self.run(name, at)
        self.took[name] = time.monotonic() - began
        assert answer.status == EXIT["ok"], f"{name}: {answer}"
        self.references[name] = self.left(name, at, answer)
        shutil.rmtree(at)

    def trial(self, name):
        at = self.p.folder / name
        shutil.rmtree(at, ignore_errors=True)
        shutil.copytree(self.at, at)
        return at

    def left(self, name, at, answer):
        """What a command left that has to be the same however it came about."""
        journal, store = [], at / self.words[name][-1]
        if name in (*LOOP, FIRST):
            for (run,) in rows(store, "SELECT id FROM run ORDER BY id"):
                journal.append(kept(store, run))
            charges = rows(store, "SELECT effect, attempt, state, reserved_microusd, settled_microusd FROM charge ORDER BY effect, attempt")
            journal.append(charges)
        said = answer.out if name in ("verdicts", "library") else ""
        if name == "check":
            said = json.loads(answer.out or "{}").get("outcome")
        return dict(journal=journal, files=files(at), said=said)

    def differences(self, name, at, answer):
        mine, its = self.left(name, at, answer), self.references[name]
        return [f"{what}: {first_difference(mine[what], its[what])}" for what in its if mine[what] != its[what]]

    def whole_journal(self, at):
        """Every journal in a folder opens and is consistent."""
        for path in (at / "s.db", at / "filled.db", at / "fresh.db", at / "first.db"):
            if path.exists() and path.stat().st_size:
                assert rows(path, "PRAGMA integrity_check") == [("ok",)], f"{path} is damaged"


def content(path):
    """Bytes of a file, without times of day and what is measured anew."""
    data = path.read_bytes()
    if path.suffix == ".json":
        with_times = json.loads(data)
        return strip(with_times)
    return data


def strip(value):
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if k not in TIMES}
    return [strip(v) for v in value] if isinstance(value, list) else value


IGNORED = {"index.html", "results.json", "results.md", "page.html"}  # they show the day and how long it took


def files(at):
    """Everything below, journals and what shows times aside; figures are made from results.json."""
    found = {}
    for path in sorted(at.rglob("*")):
        part = path.relative_to(at)
        if path.is_file() and ".db" not in path.name and path.suffix not in (".svg", ".tmp") and part.parts[0] != "cache":
            found[str(part)] = "there" if path.name in IGNORED else content(path)
    return found


def first_difference(mine, its):
    if isinstance(mine, dict) and isinstance(its, dict):
        for key in sorted({*mine, *its}, key=str):
            if mine.get(key) != its.get(key):
                return f"{key}: {first_difference(mine.get(key), its.get(key))}"
    if isinstance(mine, (list, tuple)) and isinstance(its, (list, tuple)):
        for i, (a, b) in enumerate(zip(mine, its)):
            if a != b:
                return f"[{i}]: {first_difference(a, b)}"
        if len(mine) != len(its):
            return f"{len(mine)} instead of {len(its)}: {(mine[len(its):] or its[len(mine):])[0]!r:.300}"
    return f"{mine!r:.300} instead of {its!r:.300}"


def make(program, source, folder, only=None):
    return World(Place(program, source, folder), only)


__all__ = ["EXIT", "LOOP", "Place", "Skip", "World", "files", "flow", "make", "rows"]
