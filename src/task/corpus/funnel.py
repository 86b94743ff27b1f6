"""funnel.py - what became of every candidate: the log, the progress, the table.

funnel.jsonl has one line for each candidate that is done, appended as it ends, so that a killed run loses nothing; at the end
it is laid in order.  A line's `stage` is where the candidate ended; `reason` is null where it was admitted.
SPDX-License-Identifier: Apache-2.0
"""
import collections
import contextlib
import fcntl
import json
import os
import re
import shutil
import sys
import time

import alike
from sources import Missing

STAGES = (("parsed", "files that are Python"), ("found", "modules, functions and Triton launchers in them"), ("licensed", "of a licence that allows it"),
          ("closed", "with all that they name, in one file"), ("distinct", "no near-duplicates"), ("kept", "not held out"), ("runs", "inputs found, deterministic, values checked"),
          ("imported", "shapes and oracle found"), ("checked", "wrong answers are rejected"), ("admitted", "and a plain kernel passes"))
ORDER = [name for name, _ in STAGES]
FROM_RUNS = ORDER.index("runs")
SCHEMA = "klineage/corpus"
HOMES = ("tasks", "half")    # of those that are admitted, and of those that only lack a plain kernel


@contextlib.contextmanager
def locked(out):
    """One run at a time in a folder."""
    with open(os.path.join(out, "lock"), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Missing(f"{out}: another run is at work in this folder") from None
        yield


class Progress:
    """On stderr: one line on a terminal, a line a while elsewhere; lines of JSON where the answer is JSON."""

    def __init__(self, quiet, as_json):
        self.quiet, self.as_json, self.live, self.last = quiet, as_json, sys.stderr.isatty() and not as_json, 0.0
        self.shows = not quiet and (not as_json or bool(os.environ.get("KLINEAGE_PROGRESS")))

    def put(self, text, level):
        line = json.dumps({"schema": "klineage/message", "version": 1, "level": level, "text": text}) if self.as_json else f"klineage: {text}" if level == "warning" else text
        print(line, file=sys.stderr, flush=True)

    def line(self, text):
        now = time.monotonic()
        if not self.shows or not self.live and now - self.last < 10:
            return
        self.last = now
        if self.live:
            print(f"\r\x1b[K{text[:110]}", end="", file=sys.stderr, flush=True)
        else:
            self.put(text, "progress")

    def note(self, text, level="info"):
        if not self.quiet and (level == "warning" or self.shows):
            self.end()
            self.put(text, level)

    def end(self):
        if self.live and self.last:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def key_of(row):
    return row["package"], row["id"], row["kind"]


class Log:
    def __init__(self, out):
        self.out, self.path = out, os.path.join(out, "funnel.jsonl")
        self.files, self.licences, self.seen, self.before = collections.Counter(), {}, {}, {}
        self.made = collections.defaultdict(set)    # the tasks that a candidate became in earlier runs
        for line in self.old_lines():
            self.before[key_of(line)] = line
            if line.get("task"):
                self.made[key_of(line)].add(line["task"])
        self.file = open(self.path, "a")
        self.pending = collections.Counter()    # candidates that were not tried yet, by package

    def old_lines(self):
        try:
            with open(self.path) as file:
                for text in file:
                    try:
                        yield json.loads(text)
                    except ValueError:
                        continue    # the line in which a run was killed
        except OSError:
            return

    def is_done(self, job):
        """Was it tried before, and is what it became still there?"""
        row = self.before.get(key_of(job))
        if not row or row.get("key") != job["key"] or row["reason"] == "it could not be tried":
            return False
        return not row.get("task") or os.path.isdir(os.path.join(self.out, row["task"]))

    def rows(self, rows):
        for row in rows:
            if row["kind"] == "file" and not row["reason"]:
                self.files[row["package"]] += 1
            else:
                self.row(row)

    def row(self, row):
        key = key_of(row)
        self.seen[key] = row
        if self.before.get(key) != row:
            self.file.write(json.dumps(row) + "\n")
            self.file.flush()

    def forget(self, name):
        """A task that an earlier run made is one no longer."""
        for home in HOMES if re.fullmatch(r"\w+", name) else ():
            shutil.rmtree(os.path.join(self.out, home, name), ignore_errors=True)

    def close(self, table):
        for key in self.seen.keys() & self.made.keys():
            for task in self.made[key] - {self.seen[key].get("task")}:
                self.forget(os.path.basename(task))
        self.file.close()
        with open(self.path + ".new", "w") as file:
            for row in table.rows:
                file.write(json.dumps(row) + "\n")
        os.replace(self.path + ".new", self.path)
        with open(os.path.join(self.out, "funnel.json"), "w") as file:
            file.write(json.dumps(table.result()) + "\n")


class Table:
    def __init__(self, log):
        self.rows = sorted(log.seen.values(), key=lambda r: (r["package"].lower(), r["id"], r["kind"]))
        self.files = log.files
        self.candidates = [r for r in self.rows if r["kind"] not in ("file", "package")]
        self.pending = log.pending
        self.untried = sum(self.pending.values())
        self.admitted = sum(self.is_through(r) for r in self.candidates)
        found = alike.clusters([(r["task"], r["family"], r["operators"]) for r in self.candidates if r.get("task")])
        for row in self.candidates:
            if row.get("task") in found:
                row["cluster"] = os.path.basename(found[row["task"]])
        self.n_clusters = len(set(found.values()))

    @staticmethod
    def is_through(row):
        return row["stage"] == "admitted" and not row["reason"]

    def left(self, row, stage):
        """Did a candidate get through a stage?"""
        at = ORDER.index(row["stage"])
        return at > ORDER.index(stage) or at == ORDER.index(stage) and not row["reason"]

    def stages(self):
        bad_files = [r for r in self.rows if r["stage"] == "parsed" and r["kind"] == "file"]
        n_files = sum(self.files.values())
        yield "parsed", n_files, reasons(bad_files)
        yield "found", len(self.candidates) + self.untried, []
        for name in ORDER[2:]:
            ended = [r for r in self.candidates if r["stage"] == name and r["reason"]]
            waiting = self.untried if ORDER.index(name) < FROM_RUNS else 0
            yield name, sum(self.left(r, name) for r in self.candidates) + waiting, reasons(ended)

    def packages(self):
        names = dict.fromkeys(r["package"] for r in self.rows)
        for name in [*names, *(n for n in self.files if n not in names)]:
            mine = [r for r in self.candidates if r["package"] == name]
            whole = next((r for r in self.rows if r["package"] == name), None)
            yield {"package": name, "left_out": left_out(whole), "version": whole["version"] if whole else "", "licence": whole["licence"] if whole else "", "files": self.files[name], "found": len(mine) + self.pending[name],
                   "distinct": sum(self.left(r, "distinct") for r in mine) + self.pending[name], "runs": sum(self.left(r, "runs") for r in mine),
                   "checked": sum(self.left(r, "checked") for r in mine), "admitted": sum(self.is_through(r) for r in mine)}

    def families(self):
        counts = collections.defaultdict(lambda: [0, 0, set()])
        for r in self.candidates:
            if r.get("task"):
                mine = counts[r["family"]]
                mine[0] += 1
                mine[1] += self.is_through(r)
                mine[2].add(r.get("cluster"))
        return [{"family": f, "checked": n, "admitted": a, "clusters": len(c)} for f, (n, a, c) in sorted(counts.items(), key=lambda x: (-x[1][1], x[0]))]

    def result(self):
        seconds = sum(r.get("seconds", 0) for r in self.candidates)
        return {"schema": SCHEMA, "version": 1, "admitted": self.admitted, "clusters": self.n_clusters, "untried": self.untried, "seconds": round(seconds, 1),
                           "stages": [{"stage": s, "left": n, "reasons": [{"reason": w, "count": c} for w, c in why]} for s, n, why in self.stages()],
                           "packages": list(self.packages()), "families": self.families()}

    def text(self, out):
        lines = [f"{'stage':<10} {'left':>7}  what is left, and why the others are not"]
        titles = dict(STAGES)
        for name, n, why in self.stages():
            lines.append(f"{name:<10} {n:>7}  {titles[name]}")
            if name == "kept" and self.untried:
                lines.append(f"{'':<10} {'':>7}    {-self.untried:>7}  not tried yet")
            lines += [f"{'':<10} {'':>7}    {-c:>7}  {w}" for w, c in why[:8]]
            if len(why) > 8:
                lines.append(f"{'':<10} {'':>7}    {-sum(c for _, c in why[8:]):>7}  {len(why) - 8} other reasons")
        lines += ["", f"{'package':<28} {'licence':<14} {'files':>6} {'found':>6} {'distinct':>8} {'runs':>6} {'checked':>8} {'admitted':>8}"]
        for p in self.packages():
            lines.append(f"{(p['package'] + ' ' + p['version'])[:28]:<28} {p['licence'][:14]:<14} {p['files']:>6} {p['found']:>6} {p['distinct']:>8} {p['runs']:>6} {p['checked']:>8} {p['admitted']:>8}")
            lines += [f"  left out: {p['left_out']}"] * bool(p["left_out"])
        lines += ["", f"{'family':<18} {'checked':>8} {'admitted':>8} {'clusters':>8}"]
        lines += [f"{f['family']:<18} {f['checked']:>8} {f['admitted']:>8} {f['clusters']:>8}" for f in self.families()]
        lines += ["", f"{self.admitted} tasks in {os.path.join(out, 'tasks')}, {self.n_clusters} clusters; every candidate: {os.path.join(out, 'funnel.jsonl')}", ""]
        return "\n".join(lines)


def left_out(row):
    """Why nothing of a package is a candidate; null where something may be."""
    return row["reason"] if row and row["kind"] == "package" else None


def reasons(rows):
    return collections.Counter(r["reason"] for r in rows if r["reason"]).most_common()
