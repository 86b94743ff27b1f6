#!/usr/bin/env python3
"""import.py - what becomes of the cards of the authors' release: loaded, flagged, mapped to an action, and what keeps the others out.

Their text is not part of this repository: the folder of a checkout is given, or named by KLINEAGE_CARDS.  The cards go into a library of
their own, which is thrown away unless --library names one.

usage: bench/import.py [FOLDER] [--klineage PROGRAM] [--library DIR]
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def imported(program, folder, library):
    done = subprocess.run([program, "library", "import", folder, "--library", library, "--json"], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["cards"]


def tables(cards):
    loaded = [c for c in cards if not c["error"]]
    flags = collections.Counter(flag for c in loaded for flag in c["flags"].split())
    rows = [("cards found", len(cards)), ("loaded", len(loaded)), ("names that differ", len({c["name"] for c in loaded})),
            ("mapped to an action", sum(not c["action"].startswith("other:") for c in loaded)), ("with a patch", sum(c["patch"] for c in loaded)),
            ("with a contract over facts", sum(c["contract"] for c in loaded)),
            ("preconditions", sum(c["preconditions"] for c in loaded))] + [(f"flagged: {flag}", n) for flag, n in sorted(flags.items())]
    print("| what | cards |\n| --- | ---: |")
    for what, n in rows:
        print(f"| {what} | {n} |")
    print("\n| action | cards |\n| --- | ---: |")
    for action, n in collections.Counter(c["action"] if not c["action"].startswith("other:") else "other" for c in loaded).most_common():
        print(f"| `{action}` | {n} |")
    for why, which in (("Without an action of ours", [c["name"] for c in loaded if c["action"].startswith("other:")]),
                       ("Not loaded", [f"{c['path']}: {c['error']}" for c in cards if c["error"]])):
        if which:
            print(f"\n{why}:\n\n" + "\n".join(f"- {name}" for name in which))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.environ.get("KLINEAGE_CARDS"))
    parser.add_argument("--klineage", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--library")
    args = parser.parse_args()
    if not args.folder:
        parser.error("name the folder of a checkout's cards, or set KLINEAGE_CARDS")
    with tempfile.TemporaryDirectory() as own:
        tables(imported(args.klineage, args.folder, args.library or own))


if __name__ == "__main__":
    main()
