#!/usr/bin/env python3
"""dataset_flow.py - runs as rows for training: what is in them, what never is, and that trainers take them.

Driven like flow.py, whose Place it shares, over the task of loop_flow.py; its recordings hold replies that are right, wrong, no kernel, and a cheat.
SPDX-License-Identifier: Apache-2.0
"""
import glob
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

import flow
from flow import Skip
from loop_place import BROKEN, DONE, GOOD, INNER, LOOP, NOTHING, SESSION, TASK, WRONG, database, edit, optimize, recording

SLOW_AND_WRONG = edit(INNER, "        y[i] = i ? y[i - 1] - x[i] : x[i];\n")
SAME_IDEA = edit(INNER, "        float sum = i ? y[i - 1] : 0;\n        sum += x[i];\n        y[i] = sum;\n")
NEVER = ("undecided", "unstable", "same")


def searched(p, *more):
    """Two searches in one run: each reply knows its place.  `running` is of the family scan, where its folder is known."""
    p.env["KLINEAGE_TASKS"] = str(LOOP)
    script = recording(p, SESSION)
    lines = [dict(slot=f"running/bestofn/1/generate/{i}", text=text) for i, text in enumerate((GOOD, SLOW_AND_WRONG, BROKEN, NOTHING, SAME_IDEA))]
    with open(p.folder / "calls.jsonl", "a") as calls:
        calls.writelines(json.dumps(line) + "\n" for line in lines)
    return optimize(p, script, "--priced-as", "claude-haiku-5-5", "--json", *more, policy="generate,bestofn").is_("ok").json()["run"]


def export(p, run, form, *options):
    return p.run("dataset", "export", run, "--format", form, "--out", p.folder / form, "--json", *options)


def rows(p, form):
    return [json.loads(line) for name in sorted(glob.glob(str(p.folder / form / "*.jsonl"))) for line in open(name)]


def validated(p, form, found):
    schema = json.loads((p.source / f"docs/schema/dataset-{form}.schema.json").read_text())
    try:
        import jsonschema
    except ImportError:  # then the rest still holds; on Debian: apt install python3-jsonschema
        return
    for row in found:
        jsonschema.Draft202012Validator(schema).validate(row)


def count(tallies, name):
    return sum(t["rows"] for t in tallies if t["name"] == name)


@flow.alone
def test_formats(p):
    run = searched(p)
    steps = p.run("run", "show", run, "--json").is_("ok").json()["steps"]
    told = export(p, run, "trace").is_("ok").json()
    trace = rows(p, "trace")
    validated(p, "trace", trace)
    assert told["rows"] == len(trace) == told["steps"] == len(steps), told
    assert {row["family"] for row in trace} == {"scan"} and {row["task"] for row in trace} == {"running"}, told
    by_place = {(row["track"], row["n"]): row for row in trace}
    for step in steps:
        row = by_place[step["track"], step["n"]]
        assert (row["outcome"], row["gain"], row["call"], row["kernel"]) == (step["outcome"], step["gain"], step["call"], step["kernel"])
    judged = [row for row in trace if row["parent"] and row["source"] and row["phase"] != "end"]
    assert len(judged) == told["linked"] and all(row["link"] == "applied" and row["messages"] and row["replayed"] for row in judged), told
    assert {row["reply"] for row in judged} <= {*SESSION, GOOD, SLOW_AND_WRONG, BROKEN, SAME_IDEA}
    assert all(row["parent_source"] in row["messages"][1]["content"] for row in judged if row["track"] == "running/bestofn/1")
    assert {row["reply"] for row in trace if row["link"] == "order"} == {NOTHING, DONE}

    fast = [row for row in judged if row["call"] == "faster" and row["outcome"] == "pass"]
    if not fast:
        export(p, run, "sft").is_("no")
        raise Skip("this machine is too busy: nothing was decided")
    told = export(p, run, "sft").is_("ok").json()
    sft = rows(p, "sft")
    validated(p, "sft", sft)
    assert all(row["completion"][0]["role"] == "assistant" and row["gain"] > 1 for row in sft)
    assert {row["completion"][0]["content"] for row in sft} == {row["reply"] for row in fast}
    assert len({json.dumps([row["prompt"], row["completion"]]) for row in sft}) == len(sft)
    assert told["rows"] == len(sft) and told["rows"] + sum(t["rows"] for t in told["left_out"]) == told["steps"], told

    export(p, run, "rl").is_("ok")
    best = rows(p, "rl")
    validated(p, "rl", best)
    assert best and all(row["reference_call"] == "faster" and row["parent_source"] in row["prompt"][1]["content"] for row in best)
    assert {row["verdict"] for row in best} <= {row["verdict"] for row in fast if row["best"]}

    export(p, run, "preference").is_("ok")
    pairs = rows(p, "preference")
    validated(p, "preference", pairs)
    assert pairs and not any(pair["rejected_outcome"] in NEVER or pair["rejected_call"] in NEVER for pair in pairs)
    assert {pair["chosen"][0]["content"] for pair in pairs} <= {row["reply"] for row in fast}
    assert WRONG not in {pair["rejected"][0]["content"] for pair in pairs}, "its parent is another one"
    for form in ("trace", "sft", "rl", "preference"):
        card = (p.folder / form / "README.md").read_text()
        assert card.startswith("---\nconfigs:\n") and "`scan`" in card and "replay of claude-haiku-5-5" in card and "`replayed`" in card, card


def test_a_run_without_a_model(p):
    """mutate:1 proposes; whatever it is worth, a trace has all of it."""
    p.env["KLINEAGE_TASKS"] = str(LOOP)
    answer = optimize(p, "mutate:1", "--max-steps", "4", "--json", policy="bestofn")
    run = answer.json()["run"]
    told = export(p, run, "trace").is_("ok").json()
    trace = rows(p, "trace")
    changes = [row for row in trace if row["parent"] and row["source"] and row["phase"] != "end"]
    assert told["rows"] == told["steps"] == len(trace) and len(changes) == told["linked"] > 0, told
    assert all("mutate" in row["model"] and not row["replayed"] for row in changes), changes[0]["model"]
    export(p, run, "trace").is_("usage", "not empty", "--force")
    export(p, run, "trace", "--force").is_("ok")
    assert rows(p, "trace") == trace, "the same journal gives the same rows"


def test_what_must_not_appear(p):
    p.env["KLINEAGE_TASKS"] = str(LOOP)
    run = optimize(p, recording(p, [GOOD]), "--json").json()["run"]
    for name in ("running", "scan", "sc*n"):
        told = export(p, run, "trace", "--force", "--held-out", p.write("held", f"# of the benchmark\nsoftmax\n{name}   # this one\n")).is_("no").json()
        assert told["rows"] == 0 and count(told["refused"], "running") == told["steps"] > 0, told
        assert not glob.glob(str(p.folder / "trace/*.jsonl")) and "must not appear" in (p.folder / "trace/README.md").read_text()
    said = p.run("dataset", "export", run, "--format", "trace", "--out", "again", "--held-out", "held").is_("no", "refused, of running: it must not appear")
    assert "0 rows" in said.out
    told = export(p, run, "trace", "--force", "--held-out", p.write("held", "softmax\n")).is_("ok").json()
    assert told["rows"] == told["steps"] and not told["refused"], told
    export(p, run, "trace", "--held-out", p.write("held", "# none\n\n")).is_("usage", "no task and no family")
    export(p, run, "trace", "--held-out", "nowhere").is_("usage", "nowhere")


def test_slips(p):
    p.run("dataset", "export", "1234").is_("usage", "--format trace --out DIR")
    p.run("dataset", "export", "1234", "--format", "sftt").is_("usage", "sft|rl|preference|trace")
    p.run("dataset", "export", "1234", "--format", "sft").is_("usage", "--out DIR")
    p.run("dataset", "export", "1234", "--format", "sft", "--out", "d").is_("usage", "1234", "klineage run list")
    p.run("dataset", "export", "--format", "sft", "--out", "d").is_("usage")
    p.run("dataset", "exprt").is_("usage", "did you mean klineage dataset export?")
    assert not (p.folder / "d").exists()


def test_a_damaged_run(p):
    """A step or an answer that is no JSON is named; a text that is gone leaves its row without one."""
    p.env["KLINEAGE_TASKS"] = str(LOOP)
    run = optimize(p, recording(p, [GOOD, NOTHING]), "--json").json()["run"]
    def change(statement, *values):
        with sqlite3.connect(database(p)) as journal:
            assert journal.execute(statement, values).rowcount, statement
        journal.close()
    (text,) = [row["reply"] for row in (export(p, run, "trace").is_("ok") and rows(p, "trace")) if row["link"] == "applied"]
    change("DELETE FROM blob WHERE text = ?", text.encode())
    export(p, run, "trace", "--force").is_("ok")
    assert not [row for row in rows(p, "trace") if row["link"] == "applied"]
    export(p, run, "sft").is_("no", "no reply is known that gives it") if [row for row in rows(p, "trace") if row["call"] == "faster"] else None
    change("UPDATE step SET json = '{\"n\":' WHERE n = 1")
    export(p, run, "trace", "--force").is_("usage", "journal: step")
    assert rows(p, "trace"), "what was there before stays"


@flow.alone
def test_long_trainers_take_it(p):
    """Needs trl, transformers and datasets in the Python of KLINEAGE_TRAIN_PYTHON, else of KLINEAGE_PYTHON."""
    python = os.environ.get("KLINEAGE_TRAIN_PYTHON") or os.environ.get("KLINEAGE_PYTHON") or "python3"
    known = subprocess.run([python, "-c", "import datasets, trl"], capture_output=True, text=True)
    if known.returncode:
        raise Skip(f"{python}: {known.stderr.strip().splitlines()[-1]}")
    run = searched(p)
    for form in ("sft", "rl"):
        told = export(p, run, form)
        if told.status:
            raise Skip("this machine is too busy: nothing was decided")
    train = pathlib.Path(__file__).with_name("dataset_train.py")
    done = subprocess.run([python, "-B", train, p.folder / "sft", p.folder / "rl", p.folder / "out"], capture_output=True, text=True, timeout=600,
                          env={**p.env, "HOME": str(p.folder)})
    if done.returncode == 77:
        raise Skip(done.stdout.strip())
    assert done.returncode == 0 and "SFTTrainer: 1 step" in done.stdout and "GRPOTrainer: 1 step" in done.stdout, done.stdout + done.stderr


# ---- running ------------------------------------------------------------------------------------------------------------------


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
