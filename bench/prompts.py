#!/usr/bin/env python3
"""prompts.py - how many tokens the first request of a search has, as the ledger estimates them: bytes / 4.

Each search is begun at the task's tiny shape with a mailbox for a model, which writes the request; nobody answers it, so that nothing
is paid.  Prints a table in Markdown: the system turn, of which the index of cards, and the first turn, of which the cards in it.

usage: bench/prompts.py [--klineage PROGRAM] [--surface c] [--policy klineage,generate] [TASK...]
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TASKS = ("softmax", "gemm", "gdn", "rmsnorm", "topk")


def first_request(program, task, surface, policy):
    """The turns of the first request, as bytes."""
    with tempfile.TemporaryDirectory() as at:
        command = [pathlib.Path(program).resolve(), "optimize", task, "--surface", surface, "--policy", policy, "--workload", "tiny", "--quick", "--once",
                   "--model", f"mailbox:{at}/box", "--store", f"{at}/journal.db", "--library", str(ROOT / "library")]
        done = subprocess.run(command, cwd=at, env=dict(os.environ, LC_ALL="C"), capture_output=True, text=True)
        requests = list(pathlib.Path(at).glob("box/requests/*.md"))
        if len(requests) != 1:
            sys.exit(f"{task}: {len(requests)} requests, not one\n{done.stderr}")
        text = requests[0].read_bytes()
    return re.split(rb"\n# Turn \d+ of \d+: \w+\n\n", text)[1:]


def tokens(text):
    return (len(text) + 3) // 4


def part(turn, heading):
    """From a heading to the next one of the same or a higher level."""
    found = re.search(rb"\n# " + heading + rb".*?(?=\n# |\Z)", turn, re.S)
    return found[0] if found else b""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--klineage", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--surface", default="c")
    parser.add_argument("--policy", default="klineage,generate")
    parser.add_argument("tasks", nargs="*", default=TASKS)
    given = parser.parse_args()
    print("| task | policy | tokens | system turn | cards in it | first turn | cards in it |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for task in given.tasks:
        for policy in given.policy.split(","):
            system, first = first_request(given.klineage, task, given.surface, policy)
            counts = (tokens(system) + tokens(first), tokens(system), tokens(part(system, rb"What is known: SkillCards")), tokens(first),
                      tokens(part(first, rb"What was learned so far")))
            print(f"| {task} | {policy} | " + " | ".join(f"{n:,}".replace(",", " ") for n in counts) + " |", flush=True)


if __name__ == "__main__":
    main()
