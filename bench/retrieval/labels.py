#!/usr/bin/env python3
"""labels.py - the label of every cell, derived from the tables beside it by the rule of RULE.md.

    bench/retrieval/labels.py [STATE]              counts, or the labels of one state with the words that decided
    bench/retrieval/labels.py --library KLINEAGE   library/labels.tsv: by the hash of a kernel, the cards that apply, and the borderline ones
SPDX-License-Identifier: Apache-2.0
"""
import collections
import csv
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXTENSIONS = {"c": "c", "cl": "opencl", "cu": "cuda"}
ORDER = "SCPDXA"


def table(name):
    """Rows by their first column."""
    with open(HERE / name, newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def states():
    """name: {task, surface, facts, next}"""
    found = {}
    for row in table("states.tsv"):
        where, name = row["state"].rsplit("/", 1)
        lineage = re.fullmatch(r"library/lineages/(.+)-(\w+)", where)
        task, surface = lineage.groups() if lineage else (where.split("/")[1], EXTENSIONS[name.rsplit(".", 1)[1]])
        found[row["state"]] = {"task": task, "surface": surface, "next": row["next"].split(),
                               "facts": set((row["constructs"] + " " + row["stages"]).split())}
    return found


def any_of(alternatives, facts):
    return next((word for word in alternatives.split("|") if word in facts), None)


def derive(card, state):
    """The label, and the word that decided."""
    facts = state["facts"]
    if card["surface"] != state["surface"]:
        return "S", state["surface"]
    if not any_of(card["needs"], facts):
        return "C", f"no {card['needs']}"
    if present := any_of(card["present"], facts):
        return "P", present
    if card["stage"] and not any_of(card["stage"], facts):
        return "D", f"no {card['stage']}"
    for condition in card["borderline"].split():
        if condition.split(":")[0] in facts:
            return "X", condition
    return "A", ""


def cells(known):
    """(state, card): (label, why)"""
    found = {(name, card["card"]): derive(card, state) for name, state in known.items() for card in table("cards.tsv")}
    for row in table("overrides.tsv"):
        found[row["state"], row["card"]] = row["label"], row["reason"]
    return found


def text(state, klineage):
    """The whole source of a state."""
    if state.startswith("library/"):
        path, name = state.rsplit("/", 1)
        lineage = json.loads((ROOT / f"{path}.json").read_text())
        return next(each["source"] for each in lineage["states"] if each["name"] == name)
    return subprocess.run([klineage, "kernel", "source", state], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def hash_of(state, klineage):
    if state.startswith("library/"):
        path, name = state.rsplit("/", 1)
        return next(each["hash"] for each in json.loads((ROOT / f"{path}.json").read_text())["states"] if each["name"] == name)
    shown = subprocess.run([klineage, "kernel", "show", state, "--json", "-q"], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)["hash"]


def library(klineage):
    known, cards = states(), [row["card"] for row in table("cards.tsv")]
    found = cells(known)
    for name in known:
        words = [" ".join(card for card in cards if found[name, card][0] == label) for label in "AX"]
        yield "\t".join([hash_of(name, klineage), *words])


def main(name=None, klineage=None):
    found = cells(states())
    if name == "--library":
        print(*library(klineage), sep="\n")
    elif name:
        for (state, card), (label, why) in found.items():
            if state == name:
                print(label, card, why)
    else:
        counts = collections.Counter((state.split("/")[0], label) for (state, _), (label, _) in found.items())
        for origin in sorted({origin for origin, _ in counts}):
            print(f"{origin:8}", *(f"{label} {counts[origin, label]:4}" for label in ORDER))


if __name__ == "__main__":
    main(*sys.argv[1:])
