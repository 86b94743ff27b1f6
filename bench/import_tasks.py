#!/usr/bin/env python3
"""import_tasks.py - what becomes of other people's collections: which problems load as tasks, which of them the gate judges, and why not.

Their problems are not part of this repository: KLINEAGE_COLLECTIONS names folders, `NAME=FOLDER` separated by colons.
Judged means that the naive kernel that was drafted, or else a kernel that writes nothing, gets a verdict about correctness
at every small shape: the oracle answered.  Nothing is timed.

A name with a text file in the place of a folder is a list of functions of installed packages, as bench/functions.txt.

usage: bench/import_tasks.py [NAME=FOLDER|FILE.txt...] [--klineage PROGRAM] [--every N] [--seconds N] [--json FILE]
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTHING = "//! launch nothing args()\nvoid nothing(void) {}\n"
JUDGED = {"pass", "wrong"}


def asked(command, seconds):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
        return json.loads(done.stdout) if done.stdout.startswith("{") else None, done.stderr
    except subprocess.TimeoutExpired:
        return None, f"not within {seconds} s"


def functions(program, file, out):
    """One call each, as somebody types it."""
    for i, line in enumerate(file.read_text().splitlines()):
        if line.startswith("#") or not line.strip():
            continue
        source, _, inputs = (x.strip() for x in line.partition("|"))
        answer, error = asked([program, "task", "import", source, "--inputs", inputs, "--out", f"{out}/{i}", "--json"], None)
        if not answer:
            said = json.loads(error.splitlines()[-1])
            answer = {"problems": [{"name": source, "error": said["message"].removeprefix("not imported: ").removeprefix(f"{source}: ")}]}
        yield from answer["problems"]


def imported(program, folder, out):
    if folder.endswith(".txt"):
        return list(functions(program, pathlib.Path(folder), out))
    answer, error = asked([program, "task", "import", folder, "--out", out, "--json"], None)
    if not answer:
        sys.exit(f"{folder}: {error}")
    return answer["problems"]


def judged(program, task, folder, seconds):
    """(verdict's outcome or '', why not)."""
    kernel = pathlib.Path(task, "naive.c")
    if not kernel.exists():
        kernel = pathlib.Path(folder, "nothing.c")
        kernel.write_text(NOTHING)
    verdict, error = asked([program, "gate", task, str(kernel), "--workload", "tiny", "--check-only", "--json", "--store", f"{folder}/journal.db"], seconds)
    if verdict:
        return verdict["outcome"], verdict.get("why") or ""
    try:
        said = json.loads(error.splitlines()[-1])
        return "", said.get("message") or error
    except (ValueError, IndexError):
        return "", error.strip()[-200:]


def class_of(why):
    """Numbers and names out of a reason, so that alike ones are counted together."""
    return re.sub(r"`[^`]*`|'[^']*'|\d+", "*", why.split("; ")[0])[:90]


def measure(name, folder, args):
    rows = []
    with tempfile.TemporaryDirectory(prefix="klineage-import-") as place:
        problems = imported(args.klineage, folder, f"{place}/tasks")
        for i, o in enumerate(problems):
            row = {"collection": name, "name": o["name"], "loads": not o["error"], "naive": bool(o.get("naive")), "oracle": o.get("oracle"), "why": o["error"]}
            if row["loads"] and i % args.every == 0:
                outcome, why = judged(args.klineage, o["folder"], place, args.seconds)
                row.update(asked=True, outcome=outcome, judged=outcome in JUDGED, why=None if outcome in JUDGED else f"{outcome}: {why}" if outcome else why)
            rows.append(row)
            if args.json:
                with open(args.json, "a") as file:
                    file.write(json.dumps(row) + "\n")
    return rows


def tables(rows):
    print("| collection | problems | load | with a naive kernel | oracle in float64 | asked | judged |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in dict.fromkeys(r["collection"] for r in rows):
        mine = [r for r in rows if r["collection"] == name]
        print(f"| {name} | {len(mine)} | {sum(r['loads'] for r in mine)} | {sum(r['naive'] for r in mine)} | {sum(r['oracle'] == 'float64' for r in mine)} | "
              f"{sum(bool(r.get('asked')) for r in mine)} | {sum(bool(r.get('judged')) for r in mine)} |")
    print("\n| collection | why not | problems |\n| --- | --- | ---: |")
    reasons = collections.Counter((r["collection"], class_of(r["why"])) for r in rows if r["why"])
    for (name, why), n in sorted(reasons.items(), key=lambda x: (x[0][0], -x[1])):
        print(f"| {name} | {why.replace('|', '/')} | {n} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="*", default=[c for c in os.environ.get("KLINEAGE_COLLECTIONS", "").split(":") if c])
    parser.add_argument("--klineage", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--every", type=int, default=1, help="ask the gate about every Nth problem")
    parser.add_argument("--seconds", type=int, default=120, help="limit of one verdict")
    parser.add_argument("--json", help="a line of JSON for each problem goes there too")
    args = parser.parse_args()
    if not args.collections or not all("=" in c for c in args.collections):
        parser.error("name collections as NAME=FOLDER, or in KLINEAGE_COLLECTIONS, separated by colons")
    tables([row for c in args.collections for row in measure(*c.split("=", 1), args)])


if __name__ == "__main__":
    main()
