#!/usr/bin/env python3
"""gate.py - the kernels that a pull request changes, each through `klineage gate`: a table, annotations, one exit status.

usage: gate.py --base REF --kernels TEXT [--min-ratio R] [--against-base] [--klineage PROGRAM] [-- GATE-OPTION...]

TEXT has one line for each kind of kernel: `GLOB TASK`, where `**` crosses folders; the first that fits a file counts.
Judged is what was added or changed between the merge base with REF and HEAD.  The table is appended to
$GITHUB_STEP_SUMMARY; without it, it goes to stdout.

    passed                     good
    passed, ratio < R          bad, if the whole 95 % interval is below R; a warning otherwise
    unstable, no device here   a warning: nothing is known against the kernel
    anything else              bad

Exit status 0 when nothing is bad, 1 when something is, 2 when it could not be asked.  File names and messages are those
of a stranger: they are escaped wherever they are printed, and klineage's own output is never passed on, for the runner
obeys lines that look like commands.  SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

NO_DEVICE = 7
MOST_KERNELS = 200
MARKUP = set("\\`*_[]()|~@#!&<>\"':")
SEVERITY = {"good": "", "warning": "⚠", "bad": "✗"}


class Trouble(Exception):
    pass


def git(*words):
    done = subprocess.run(["git", *words], capture_output=True)
    if done.returncode:
        raise Trouble(f"git {words[0]}: {done.stderr.decode(errors='replace').strip()} (is fetch-depth 0 in actions/checkout?)")
    return done.stdout


# ---- what is judged ----------------------------------------------------------------------------------------------------


def glob_pattern(glob):
    """`*` and `?` stay within a folder, `**` crosses them."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(parts.get(p, re.escape(p)) for p in re.split(r"(\*\*/|\*\*|\*|\?)", glob)) + r"\Z", re.S)


def rules(text):
    """[(pattern, task)] of the lines `GLOB TASK`."""
    lines = [line.split() for line in text.splitlines() if line.split() and not line.strip().startswith("#")]
    if not lines or any(len(line) != 2 for line in lines):
        raise Trouble("kernels: one line for each kind of kernel, GLOB TASK, such as: kernels/softmax*.c softmax")
    return [(glob_pattern(glob), task) for glob, task in lines]


def changed(base, known):
    """[(file, task)] of the kernels that were added or changed; a link is none."""
    names = git("diff", "-z", "--name-only", "--no-renames", "--diff-filter=AM", f"{base}...HEAD", "--").split(b"\0")
    found = []
    for name in map(os.fsdecode, filter(None, names)):
        task = next((task for pattern, task in known if pattern.match(name)), None)
        if task and os.path.isfile(name) and not os.path.islink(name):
            found.append((name, task))
    if len(found) > MOST_KERNELS:
        raise Trouble(f"{len(found)} kernels changed; at most {MOST_KERNELS} are judged")
    return found


def before(base, name, folder):
    """The kernel as it was, in a file of its own; None where it was not there."""
    start = git("merge-base", base, "HEAD").decode().strip()
    done = subprocess.run(["git", "show", f"{start}:{name}"], capture_output=True)
    if done.returncode:
        return None
    path = pathlib.Path(folder) / ("before" + pathlib.PurePosixPath(name).suffix)
    path.write_bytes(done.stdout)
    return str(path)


# ---- one kernel ---------------------------------------------------------------------------------------------------------


def ask(options, name, task, folder):
    """(exit status, what klineage said as a dict)."""
    old = before(options.base, name, folder) if options.against_base else None
    words = [options.klineage, "gate", "--json", *options.gate, *(["--against", old] if old else []), "--", task, name]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Trouble(f"{options.klineage}: {error.strerror}") from None
    lines = [line for line in done.stderr.splitlines() if '"klineage/error"' in line]
    said = json.loads(done.stdout or (lines[-1] if lines else "{}"))
    return done.returncode, said


def judge(status, said, least):
    """(severity, why) of one answer; `least` is the ratio that is asked for, or None."""
    outcome, why = said.get("outcome"), said.get("why") or said.get("message") or f"exit status {status}"
    if outcome is None:
        return "warning" if status == NO_DEVICE else "bad", why
    if outcome != "pass":
        return "warning" if outcome == "unstable" else "bad", why
    compared = ((said.get("time") or {}).get("vs") or [None])[0]
    if least is None or not compared:
        return "good" if least is None else "warning", why if least is None else "nothing to compare it with was timed"
    if compared["high"] < least:
        return "bad", f"slower than {least:g}x of {compared['baseline']}"
    if compared["ratio"] < least:
        return "warning", f"perhaps slower than {least:g}x of {compared['baseline']}: the interval reaches it"
    return "good", why


# ---- what is shown ------------------------------------------------------------------------------------------------------


def cell(text):
    """As text in a Markdown table, whatever it is."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())[:300]
    return "".join(f"&#{ord(c)};" if c in MARKUP else c for c in line)


def row(name, task, severity, why, said):
    compared = ((said.get("time") or {}).get("vs") or [None])[0]
    ratio = f"{compared['ratio']:.3g}× [{compared['low']:.3g}, {compared['high']:.3g}]" if compared else ""
    cells = (SEVERITY[severity], name, task, said.get("outcome", ""), ratio, compared["baseline"] if compared else "", why)
    return "| " + " | ".join(map(cell, cells)) + " |"


def table(rows, said):
    head = ["## klineage gate", ""]
    if not rows:
        return "\n".join([*head, "No kernel changed.", ""])
    platform = next((s["platform"]["name"] for s in said if "platform" in s), "")
    weaker = sorted({line for s in said for line in s.get("degradations", ())})
    return "\n".join([*head, "| | kernel | task | outcome | speed, 95 % | of | why |", "| --- | --- | --- | --- | --- | --- | --- |", *rows, "",
                      *([f"On {cell(platform)}."] if platform else []), *(f"- {cell(line)}" for line in weaker), ""])


def annotation(severity, name, message):
    """A workflow command: https://docs.github.com/actions, "workflow commands"."""
    def escaped(text, more=()):
        for char in ("%", "\r", "\n", *more):
            text = text.replace(char, f"%{ord(char):02X}")
        return text
    kind = {"bad": "error", "warning": "warning"}[severity]
    return f"::{kind} file={escaped(name, (':', ','))},title=klineage gate::{escaped(message)}"


def parsed():
    parser = argparse.ArgumentParser(add_help=True, allow_abbrev=False)
    parser.add_argument("--base", required=True)
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--min-ratio", type=lambda text: float(text) if text else None)
    parser.add_argument("--against-base", action="store_true")
    parser.add_argument("--klineage", default="klineage")
    parser.add_argument("gate", nargs="*", help="options of klineage gate, after --")
    return parser.parse_args()


def main():
    options = parsed()
    rows, answers, worst = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, task in changed(options.base, rules(options.kernels)):
            status, said = ask(options, name, task, folder)
            severity, why = judge(status, said, options.min_ratio)
            rows.append(row(name, task, severity, why, said))
            answers.append(said)
            worst |= severity == "bad"
            if severity != "good":
                print(annotation(severity, name, f"{said.get('outcome', 'no verdict')}: {why}"))
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    with open(summary, "a", encoding="utf-8") if summary else sys.stdout as out:
        print(table(rows, answers), file=out)
    return worst


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Trouble as trouble:
        print(f"::error title=klineage gate::{str(trouble).replace('%', '%25').replace(chr(10), ' ')}")
        sys.exit(2)
