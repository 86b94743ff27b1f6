#!/usr/bin/env python3
"""policies_flow.py - every search policy from the command line, driven by no language model: --model mutate:1 draws mechanical variations.

Driven like flow.py, whose Place it shares, over the task of loop_flow.py.  No policy is named here: the table in src/search/policies.c is.  The first
test that needs verdicts makes them, on this machine; the others begin with a journal that holds them and nothing else.
SPDX-License-Identifier: Apache-2.0
"""
import os
import random
import re
import shutil
import signal
import sys
import time

import flow
from flow import EXIT, Skip
from loop_place import TASK, begin_with, bytes_of, database, keep_verdicts_alone, kept, page, rows, start

STEPS = 8
PRICED = ("--priced-as", "claude-haiku-5-5")


def policies(p):
    return re.findall(r'^    \{"([a-z-]+)",', (p.source / "src/search/policies.c").read_text(), re.MULTILINE)


def search(p, names, *options):
    return ("optimize", TASK, "--policy", names, "--model", "mutate:1", "--library", p.source / "library", "--quick", "--max-steps", STEPS, *options)


def ran(p, words, **how):
    answer = p.run(*words, limit=280, **how)
    assert answer.status in (EXIT["ok"], EXIT["no"]), str(answer)
    for never in ("Sanitizer", "klineage: bug:"):
        assert never not in answer.out + answer.err, str(answer)
    return answer


def warm(p):
    """Begin with the verdicts of a search by every policy."""
    files = [*TASK.rglob("*.*"), *(p.source / "src/search").glob("*.c"), *(p.source / "src/rewrite").rglob("*.*"), p.source / "src/model/mutate.c"]
    begin_with(p, "policies", bytes_of(files), lambda store: ran(p, search(p, ",".join(policies(p)), "--store", store)))


def counts(store):
    return rows(store, "SELECT (SELECT count(*) FROM effect), (SELECT count(*) FROM step), (SELECT count(*) FROM charge), (SELECT count(*) FROM verdict)")[0]


def test_help_and_reference_name_every_policy(p):
    told, reference = p.run("optimize", "--help").is_("ok").out, (p.source / "docs/reference.md").read_text()
    for name in policies(p):
        assert re.search(rf"\b{name}\b", told), f"klineage optimize --help does not say {name}"
        assert re.search(rf"\b{name}\b", reference), f"docs/reference.md does not say {name}"
    p.run("optimize", TASK, "--policy", "nonsense", "--model", "mutate:1").is_("usage", "nonsense", *policies(p))


def test_a_seed_is_a_number(p):
    p.run("optimize", TASK, "--policy", "bestofn", "--model", "mutate:x", "--quick").is_("usage", "mutate:1")
    p.run("optimize", TASK, "--policy", "bestofn", "--model", "mutate:", "--quick").is_("usage", "mutate:SEED")


@flow.alone
def test_long_verdicts_to_begin_with(p):
    warm(p)


def test_long_every_policy_searches_and_the_second_time_costs_nothing(p):
    warm(p)
    words = search(p, ",".join(policies(p)), "--json")
    found = ran(p, words).json()
    assert [t["policy"] for t in found["tracks"]] == policies(p) and found["spent_microusd"] == 0, found
    steps = p.run("run", "show", found["run"], "--json").is_("ok").json()["steps"]
    for track in found["tracks"]:
        mine = [s for s in steps if s["track"] == track["track"]]
        assert 0 < track["proposals"] <= STEPS and track["stopped"], track
        assert mine[-1]["action"] == "end" and mine[-1]["why"] == track["stopped"], mine[-1]
        assert len(mine) == 2 + track["gated"] + len([s for s in mine if s["outcome"] in ("no_edit", "done")]), (track, mine)
        best = [s for s in mine if s["best"]]
        assert best[-1]["kernel"] == track["kernel"], (track, best)
        assert all(s["outcome"] == "pass" for s in best), best
    names = {name for (name,) in rows(database(p), "SELECT DISTINCT model FROM charge")}
    assert names == {"mutate:1 (no language model)"}, names
    before = counts(database(p))
    assert ran(p, words).json() == found
    assert counts(database(p)) == before, "the second time something was asked or gated"
    page(p, found["run"])


@flow.alone
def test_long_budget_is_never_passed(p):
    warm(p)
    for trial, dollars in enumerate((0.004, 0.02)):
        found = ran(p, search(p, ",".join(policies(p)), *PRICED, "--budget", dollars, "--trial", trial + 1, "--json")).json()
        spent = dict(rows(database(p), "SELECT track, sum(CASE state WHEN 'settled' THEN settled_microusd WHEN 'released' THEN 0 ELSE reserved_microusd END)"
                                       " FROM charge WHERE run = ? GROUP BY track", found["run"]))
        for track in found["tracks"]:
            assert track["stopped"], track
            assert spent.get(track["track"], 0) == track["spent_microusd"] <= dollars * 1e6, (track, spent)
        assert not rows(database(p), "SELECT * FROM charge WHERE state NOT IN ('settled', 'released')")
        if trial == 0:
            assert {t["stopped"] for t in found["tracks"]} == {"budget"}, found


def killed(p, policy, chance, folder, times):
    """The rows of a search that was killed `times` times and resumed are those of one that was left alone."""
    words, store = search(p, policy, *PRICED, "--budget", "0.2"), folder / "alone.db"
    shutil.copy(database(p), store)
    ran(p, (*words, "--store", store))
    if rows(store, "SELECT * FROM verdict WHERE outcome = 'unstable'"):
        raise Skip("this machine is too busy: a time never settled")
    run, reference = rows(store, "SELECT id FROM run")[0][0], None
    begin = folder / "begin.db"
    shutil.copy(store, begin)
    keep_verdicts_alone(begin, and_runs=True)
    reference = kept(store, run)
    at = time.monotonic()
    ran(p, (*words, "--store", store))  # out of the journal: what comes before the search, and then the search itself
    search_begins = max(0, time.monotonic() - at - 0.08)
    store, found = folder / "killed.db", set()
    shutil.copy(begin, store)
    at = time.monotonic()
    for _ in range(times):
        process = start(p, *words, "--store", store)
        time.sleep(search_begins + chance.uniform(0, 0.1))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        found.add(counts(store))
    ran(p, (*words, "--store", store))
    for mine, its, what in zip(reference, kept(store, run), ("steps", "effects", "charges")):
        assert mine == its, f"{policy}: {what} differ\n{mine}\n{its}"
    charges = rows(store, "SELECT effect, state FROM charge")
    assert {s for _, s in charges} == {"settled"} and len({e for e, _ in charges}) == len(charges), f"{policy}: {charges}"
    return found, time.monotonic() - at


@flow.alone
def test_long_killed_and_resumed(p):
    warm(p)
    chance, places = random.Random(11), set()
    for policy in policies(p):
        folder = p.folder / policy
        folder.mkdir()
        found, _ = killed(p, policy, chance, folder, 6)
        places |= {(policy, *place) for place in found}
    assert len(places) > len(policies(p)), f"all were killed in the same place: {places}"


# ---- running -------------------------------------------------------------------------------------------------------------------


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
