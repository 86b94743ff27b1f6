#!/usr/bin/env python3
"""terminal.py - the terminal in README.md is what the program says: runs each command there and puts its output below it.

usage: bench/terminal.py [--check] [PROGRAM]        PROGRAM: build/bin/klineage unless named

A capture is a code block behind a line `<!-- capture: bench/terminal.py -->`; its commands begin with `$ `.  --check changes nothing and compares
words: numbers, what is in parentheses and the line that names the machine differ from run to run.  No command of it may time a kernel.
SPDX-License-Identifier: Apache-2.0"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- capture: bench/terminal.py -->\n\n```\n)(.*?)(```\n)", re.S)
SECONDS = 120


def said(program, command):
    """One command as somebody would see it; its exit status is shown where it is not 0."""
    words = shlex.split(command)
    if words[0] != "klineage":
        sys.exit(f"a capture runs klineage alone, not {words[0]}")
    env = {**os.environ, "KLINEAGE_TASKS": str(ROOT / "tasks"), "NO_COLOR": "1"}
    done = subprocess.run([program, *words[1:]], cwd=ROOT, env=env, capture_output=True, text=True, timeout=SECONDS)
    status = f"[exit status {done.returncode}]\n" if done.returncode else ""
    return f"$ {command}\n{done.stdout}{status}"


def words_of(text):
    lines = [line for line in text.splitlines() if not line.startswith("  on ")]
    return [re.sub(r"\(.*\)|-?[0-9][0-9.e+-]*", "#", line).split() for line in lines]


def main():
    options = [a for a in sys.argv[1:] if a != "--check"]
    program = os.path.abspath(options[0]) if options else str(ROOT / "build/bin/klineage")
    page = PAGE.read_text()
    block = BLOCK.search(page)
    if not block:
        sys.exit("README.md has no capture")
    now = "\n".join(said(program, line[2:]) for line in block[2].splitlines() if line.startswith("$ "))
    if "--check" not in sys.argv:
        PAGE.write_text(page[:block.start(2)] + now + page[block.end(2):])
    elif words_of(now) != words_of(block[2]):
        sys.exit(f"the terminal of README.md says something else now: run bench/terminal.py\n{now}")


if __name__ == "__main__":
    main()
