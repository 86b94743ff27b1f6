#!/usr/bin/env python3
"""retrieval_labels.py - the tables of bench/retrieval name what is there, leave nothing out, and can be scored.

    tests/flow/retrieval_labels.py KLINEAGE SOURCE
SPDX-License-Identifier: Apache-2.0
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

KLINEAGE, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "bench/retrieval"))
import labels


def every_state():
    """The names of all kernels that the rule speaks of."""
    yield from (str(path.relative_to(SOURCE)) for path in SOURCE.glob("tasks/*/naive.*") if path.suffix[1:] in labels.EXTENSIONS)
    for ladder in SOURCE.glob("experts/*/*/"):
        rungs = [path for path in ladder.iterdir() if re.match(r"\d+-", path.name)]
        suffix = next(path.suffix for path in rungs if path.suffix != ".diff")
        if suffix[1:] not in labels.EXTENSIONS:
            continue
        yield from (str(path.with_suffix(suffix).relative_to(SOURCE)) for path in rungs)
    for path in SOURCE.glob("library/lineages/*.json"):
        lineage = json.loads(path.read_text())
        if lineage["surface"] in labels.EXTENSIONS.values():
            yield from (f"{path.relative_to(SOURCE).with_suffix('')}/{state['name']}" for state in lineage["states"])


def bare(text):
    """Without comments and white space; directives stay."""
    return re.sub(r"\s+", " ", re.sub(r"(?m)//(?!!).*$", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S)))


def states_are_all_and_once(known):
    texts = collections.defaultdict(list)
    for name in sorted(set(every_state()) | set(known)):
        texts[bare(labels.text(name, KLINEAGE))].append(name)
    for same in texts.values():
        named = [name for name in same if name in known]
        assert len(named) == 1, f"one of {same} has to be in states.tsv, {len(named)} are"


def words_are_known(known):
    facts = {row["fact"]: row["kind"] for row in labels.table("facts.tsv")}
    used = set()
    for row in labels.table("states.tsv"):
        for column, kind in (("constructs", "construct"), ("stages", "stage")):
            for word in row[column].split():
                assert facts.get(word) == kind, f"{row['state']}: '{word}' is no {kind} of facts.tsv"
                used.add(word)
    for row in labels.table("cards.tsv"):
        words = [word for column in ("needs", "present", "stage") for word in row[column].split("|") if word]
        words += [condition.split(":")[0] for condition in row["borderline"].split()]
        assert set(words) <= set(facts), f"{row['card']}: {set(words) - set(facts)} is not in facts.tsv"
        assert {condition.split(":")[1] for condition in row["borderline"].split()} <= {"partly", "type", "marginal", "fenced"}, row["card"]
    assert used == set(facts), f"no state has {set(facts) - used}"


def cards_are_the_library(known):
    cards = {row["card"]: row["surface"] for row in labels.table("cards.tsv")}
    admitted = {path.parent.name: path.read_text() for path in SOURCE.glob("library/admitted/*/SKILL.md")}
    assert set(cards) == set(admitted), f"cards.tsv and library/admitted differ in {set(cards) ^ set(admitted)}: label the card, or take it out"
    for card, text in admitted.items():
        assert f'klineage-verified-languages: "{cards[card]}"' in text, f"{card} is not of surface {cards[card]}"


def overrides_and_steps(known):
    found = labels.cells(known)
    cards = {row["card"]: row for row in labels.table("cards.tsv")}
    for row in labels.table("overrides.tsv"):
        derived = labels.derive(cards[row["card"]], known[row["state"]])[0]
        assert row["label"] in labels.ORDER and row["reason"] and row["label"] != derived, f"override of {row['state']}, {row['card']}"
    for name, state in known.items():
        given = [found[name, card][0] for card in state["next"]]
        assert not given or set(given) & set("AX"), f"{name}: its next step is {state['next']}, which the labels call {given}"
    counted = [(name, label) for (name, _), (label, _) in found.items() if label != "X"]
    assert len(counted) >= 1000 and len({known[name]["surface"] for name, _ in counted}) == 3
    return sum(label == "A" for _, label in counted) / len(counted)


def scores(base):
    program = SOURCE / "bench/retrieval/score"
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "score.json")
        subprocess.run([sys.executable, "-B", program, "--control", "--json", out], check=True)
        always = json.loads(out.read_text())["every card"]["all"]
        assert abs(always["precision"] - base) < 1e-3 and always["recall"] == 1, always
        subprocess.run([sys.executable, "-B", program, "--bin", KLINEAGE, "--json", out], check=True)
        (result,) = json.loads(out.read_text()).values()
        row = result["all"]
        assert row["hit"] + row["miss"] + row["false"] + row["refused"] == row["cells"] == always["cells"]
        assert sum(row["false_by_label"].values()) == row["false"] and 0 < row["precision"] <= 1 and 0 < row["recall"] <= 1


def library_holds_the_same_labels():
    assert (SOURCE / "library/labels.tsv").read_text() == "\n".join(labels.library(KLINEAGE)) + "\n", "bench/retrieval/labels.py --library build/bin/klineage > library/labels.tsv"


def run(program, *words):
    return subprocess.run([sys.executable, "-B", SOURCE / "bench/retrieval" / program, *words], capture_output=True, text=True)


def held_out_changes_are_in_the_library(folder):
    """Each change is said of a task that has labels, and can be taken back: less is then found."""
    assert set(" ".join(row["tasks"] for row in labels.table("decided.tsv")).split()) <= {state["task"] for state in states.values()}
    both = {}
    for words in ((), ("--held-out",)):
        assert run("score", *words, "--bin", KLINEAGE, "--json", folder / "score.json").returncode == 0
        (result,) = json.loads((folder / "score.json").read_text()).values()
        both[words] = result["all"]
    assert both[("--held-out",)]["hit"] < both[()]["hit"] and both[("--held-out",)]["cells"] == both[()]["cells"]


def a_second_reader_is_compared(folder):
    """The sheet shows no label; one who says the same agrees fully, one who says C to all no better than by chance."""
    found = labels.cells(states)
    assert run("sheet", folder / "sheet", "--bin", KLINEAGE, "--seed", "2").returncode == 0
    head, *rows = (folder / "sheet/second.tsv").read_text().splitlines()
    cells = [row.split("\t") for row in rows]
    assert len(cells) == len(set(map(tuple, cells))) >= 100 and all(row[3:] == ["", ""] for row in cells)
    assert all((folder / "sheet" / row[1]).stat().st_size and (folder / f"sheet/cards/{row[2]}.md").exists() for row in cells)
    assert not any("Contract:" in path.read_text() or "## Scope" in path.read_text() for path in folder.glob("sheet/cards/*"))
    assert run("score", "--second", folder / "sheet/second.tsv").returncode != 0
    for label, expected in ((None, 1), ("C", 0)):
        filled = [head, *("\t".join([*row[:3], label or found[row[0], row[2]][0], ""]) for row in cells)]
        (folder / "second.tsv").write_text("\n".join(filled) + "\n")
        assert run("score", "--second", folder / "second.tsv", "--json", folder / "kappa.json").returncode == 0
        assert json.loads((folder / "kappa.json").read_text())["second reader"]["kappa"] == expected
    (folder / "second.tsv").write_text(f"{head}\n" + "\t".join([*cells[0][:3], "Q", ""]) + "\n")
    assert "no label of a cell" in run("score", "--second", folder / "second.tsv").stderr


states = labels.states()
states_are_all_and_once(states)
words_are_known(states)
cards_are_the_library(states)
scores(overrides_and_steps(states))
library_holds_the_same_labels()
with tempfile.TemporaryDirectory() as folder:
    held_out_changes_are_in_the_library(pathlib.Path(folder))
    a_second_reader_is_compared(pathlib.Path(folder))
