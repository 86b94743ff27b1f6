#!/usr/bin/env python3
"""experiment_flow.py - an experiment as a user meets it: planned, run, looked at, killed, broken in one place, gone on with.

Driven like flow.py, whose Place it shares; models are scripts or a server, gates are real.  SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import flow
from flow import EXIT, Skip
from loop_place import (DONE, GOOD, HAIKU, KEY, NOTHING, TASK, UNSETTLED, WRONG, begin_with, bytes_of, database, kept, rows, serving, start, whole)

HEAD = "schema: klineage/experiment\nversion: 1\ntitle: Which one?\nbudget: 0.05\nquick: true\n"
ROWS = "policies: [generate, {policy: bestofn, name: some, max-steps: 2}]\nworkloads: [running, summing]\n"
TRACKS = [f"{w}/{p}/1" for w in ("running", "summing") for p in ("generate", "some")]


def tasks(p):
    """Two tasks beside the file: the small one, and the same under another name."""
    for name in ("running", "summing"):
        shutil.copytree(TASK, p.folder / name)
        path = p.folder / name / "definition.json"
        path.write_text(path.read_text().replace('"name": "running"', f'"name": "{name}"'))


def script(p, leave_out=(), name="calls.jsonl"):
    """What each track is answered, by slot."""
    lines = [dict(schema="klineage/recording", version=1, model="claude-haiku-5-5", command="experiment", note="")]
    for track in TRACKS:
        replies = [NOTHING, GOOD, DONE] if "/generate/" in track else [GOOD, WRONG]
        lines += [dict(slot=f"{track}/generate/{i}", text=text) for i, text in enumerate(replies) if track not in leave_out]
    return "replay:" + p.write(name, "".join(json.dumps(line) + "\n" for line in lines))


def plan_of(p, rows_=ROWS, name="x.yaml"):
    return p.write(name, HEAD + rows_)


def plan(p, rows_=ROWS):
    tasks(p)
    return plan_of(p, rows_)


def warm(p, rows_=ROWS):
    """A plan, and the verdicts of the kernels that it leads to."""
    def search(store):
        calm(p, experiment(p, plan_of(p, name="all.yaml"), "--model", script(p), "--store", store), store).is_("ok")
        shutil.rmtree(p.folder / "out")
    file = plan(p, rows_)
    sources = [*TASK.rglob("*.*"), *(p.source / "src/search").glob("*.c")]
    begin_with(p, "experiment", (NOTHING + GOOD + WRONG).encode() + bytes_of(sources), search)
    return file


def calm(p, answer, store=None):
    """The answer, unless this machine is too busy for times to settle."""
    if store or database(p).exists():
        outcomes = {o for (o,) in rows(store or database(p), "SELECT json_extract(json, '$.outcome') FROM step")}
        if outcomes & {"unstable", "hang"}:
            raise Skip(f"this machine is too busy: {outcomes}")
    if any(word in answer.out + answer.err for word in (*UNSETTLED, "no end within")):
        raise Skip("this machine is too busy: no time settled")
    return answer


def experiment(p, *words, **how):
    return p.run("experiment", *words, "--out", "out", limit=230, **how)


@flow.alone
def test_verdicts_to_begin_with(p):
    warm(p)


def test_dry_run_asks_nobody(p):
    file = plan(p)
    answer = p.run("experiment", file, "--dry-run", "--model", HAIKU).is_("ok", *TRACKS, "4 tracks", "at most $0.2000", "$0.0500 per track")
    assert not database(p).exists(), answer
    document = p.run("experiment", file, "--dry-run", "--model", HAIKU, "--budget-total", "0.07", "--json").is_("ok").json()
    assert document["schema"] == "klineage/experiment-plan" and document["most_microusd"] == 70000
    assert [t["track"] for t in document["tracks"]] == TRACKS
    p.run("experiment", file, "--dry-run", "--model", "builtin").is_("ok", "free of charge")
    some = p.run("experiment", file, "--dry-run", "--model", HAIKU, "--only", "*/some/*").is_("ok", "2 tracks")
    assert "generate" not in some.out.replace("generate, ", ""), some
    p.run("experiment", file, "--dry-run", "--model", HAIKU, "--only", "nothing/*").is_("usage", "no track matches", "--dry-run lists them")


def test_what_is_wrong_is_found_before_anything_is_paid(p):
    tasks(p)
    for rows_, words in ((ROWS.replace("bestofn", "bestofm"), ("x.yaml:6:", "no policy named 'bestofm'", "hint:")),
                         (ROWS.replace("summing", "sunning"), ("x.yaml:7:", "no task named 'sunning'", "klineage task list")),
                         (ROWS + "trails: 2\n", ("x.yaml:8:", "no key 'trails'", "trials")),
                         (ROWS + "trials: 0\n", ("x.yaml:8:", "from 1 to")),
                         (ROWS + "quick: true\n", ("x.yaml:8:", "duplicate")),
                         (ROWS + "workloads: [\n", ("x.yaml:",))):
        p.write("x.yaml", HEAD + rows_)
        with serving(p, [DONE] * 9) as server:
            experiment(p, "x.yaml", "--model", HAIKU, env={"ANTHROPIC_API_KEY": KEY}).is_("usage", *words)
            assert not server.requests()
    p.env.pop("ANTHROPIC_BASE_URL")
    p.write("x.yaml", HEAD + ROWS)
    p.run("experiment", "x.yaml").is_("usage", "no model given")
    p.run("experiment", "x.yaml", "--model", HAIKU, "--budget", "0").is_("usage", "--budget", "no budget")
    p.run("experiment", "x.yaml", "--model", HAIKU, "--jobs", "0").is_("usage", "--jobs is at least 1")
    p.run("experiment", "x.yaml", "--model", "openai:nobody-knows-it").is_("usage", "nobody-knows-it")
    p.run("experiment", "x.yaml", "--model", HAIKU, env={"ANTHROPIC_API_KEY": ""}).is_("usage", "ANTHROPIC_API_KEY")
    p.run("experiment", "nowhere.yaml", "--model", HAIKU).is_("usage", "nowhere.yaml", "examples/experiment.yaml")
    p.run("experiment", str(p.source / "examples/experiment.yaml"), "--dry-run").is_("ok", "18 tracks", "gemm-recovery/klineage/2", "at most $18.00")
    assert not rows(database(p), "SELECT * FROM step")


@flow.alone
def test_two_policies_on_two_tasks(p):
    file = plan(p)
    answer = calm(p, experiment(p, file, "--model", script(p), "--jobs", "2", "--json")).is_("ok")
    found = answer.json()
    assert found["schema"] == "klineage/experimented" and found["ended"] == 4 and not found["failed"], found
    assert [t["track"] for t in found["tracks"]] == TRACKS
    assert [t["stopped"] for t in found["tracks"]] == ["model says done", "steps"] * 2, found
    assert all(t["gain_ci"][0] > 2 for t in found["tracks"]), found
    out = p.folder / "out"
    assert isinstance(json.loads((out / "results.json").read_text()), dict)
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (out / "results.md").read_text())
    if shutil.which("gnuplot"):
        assert "figures/policies.svg" in shown, shown
        for name in shown:
            assert xml.etree.ElementTree.parse(out / name).getroot().tag.endswith("svg"), name
    else:
        assert "Figures were not drawn" in (out / "results.md").read_text()
    assert (out / "index.html").read_text().lower().startswith("<!doctype html") and "Which one?" in (out / "index.html").read_text()
    for track in TRACKS:
        name = track.replace("/", "-")
        best, diff = (out / "best" / f"{name}.c").read_text(), (out / "best" / f"{name}.diff").read_text()
        assert "y[i - 1] + x[i]" in best and diff.startswith(f"diff --git a/{name}.c b/{name}.c\n--- a/{name}.c\n"), diff
        again = p.folder / "again"
        again.mkdir(exist_ok=True)
        shutil.copy(TASK / "naive.c", again / f"{name}.c")
        subprocess.run(["git", "apply", "--unsafe-paths", "-"], input=diff.encode(), cwd=again, check=True, env={**os.environ, "GIT_CEILING_DIRECTORIES": str(p.folder)})
        assert (again / f"{name}.c").read_text() == best

    before = rows(database(p), "SELECT count(*) FROM effect")
    assert experiment(p, file, "--model", script(p), "--json").is_("ok").json() == found
    p.write("x.yaml", "# a remark\n" + (HEAD + ROWS).replace("Which one?", "Another title").replace("0.05", "0.06"))
    assert experiment(p, file, "--model", script(p), "--json").is_("ok").json()["run"] == found["run"]
    assert experiment(p, file, "--model", script(p), "--only", "running/*", "--json").is_("ok").json()["run"] == found["run"]
    assert rows(database(p), "SELECT count(*) FROM effect") == before
    p.run("run", "list").is_("ok", found["run"][:12], "experiment")


def agent(p, dies_of):
    """A program that answers, and dies of every prompt with this word in it."""
    path = p.write("agent.py", f"""import sys
said = sys.stdin.read()
if {dies_of!r} in said: sys.exit("out of ideas")
print({DONE!r} if {GOOD!r}.splitlines()[-2] in said else {GOOD!r})
""")
    return ("--model", f"command:{sys.executable} {p.folder / path}", "--priced-as", "mailbox")


def test_one_failed_track_is_the_failure_of_one(p):
    file = warm(p)
    lost = [t for t in TRACKS if t.startswith("summing/")]
    answer = calm(p, experiment(p, file, *agent(p, "summing"), "--jobs", "2", "--json"))
    answer.is_("model")
    found = answer.json()
    assert found["ended"] == 2 and found["failed"] == 2, found
    failed = [t for t in found["tracks"] if "error" in t]
    assert [t["track"] for t in failed] == lost and failed[0]["error"]["message"], failed
    assert lost[0] in json.loads(answer.err.strip().splitlines()[-1])["where"], answer.err
    best = p.folder / "out/best"
    assert sorted(f.name for f in best.glob("*.c")) == sorted(t.replace("/", "-") + ".c" for t in TRACKS if t not in lost)
    assert (p.folder / "out/results.json").exists() and (p.folder / "out/index.html").exists()
    said = experiment(p, file, *agent(p, "summing")).is_("model", "2 of 4 tracks finished, 2 failed", "failed: ")
    assert f"{lost[0]} " in said.out, said
    mended = experiment(p, file, *agent(p, "a word that no prompt has"), "--json").is_("ok").json()  # the agent is mended: only what was lost is asked
    assert mended["run"] == found["run"] and mended["ended"] == 4


def test_a_recording_that_lacks_a_track_ends_in_order(p):
    file = warm(p)
    lost = "summing/generate/1"
    found = calm(p, experiment(p, file, "--model", script(p, leave_out=[lost]), "--json")).is_("ok").json()
    assert found["ended"] == 4 and not found["failed"], found
    (track,) = [t for t in found["tracks"] if t["track"] == lost]
    assert track["stopped"] == "recording ended" and track["proposals"] == 0 and track["call"] == "same", track
    mended = experiment(p, file, "--model", script(p), "--json").is_("ok").json()  # the rest of it was found: only that is asked
    (track,) = [t for t in mended["tracks"] if t["track"] == lost]
    assert mended["run"] == found["run"] and track["stopped"] == "model says done" and track["proposals"] == 3, track


def test_a_budget_below_one_question(p):
    file = warm(p, ROWS.replace("[running, summing]", "[running]"))
    words = (file, "--model", f"mailbox:{p.folder / 'box'}", "--priced-as", "claude-haiku-5-5", "--once")
    found = calm(p, experiment(p, *words, "--budget", "0.0001", "--json")).is_("ok").json()
    assert found["starved"] == found["ended"] == 2 and found["spent_microusd"] == 0, found
    experiment(p, *words, "--budget", "0.0001").is_("ok", "2 could not afford a first call")
    assert experiment(p, *words, "--budget", "1", "--json").is_("pending").json()["waiting"] == 2


def test_optimize_keeps_what_succeeded_too(p):
    warm(p)
    words = ("optimize", "running", "summing", "--policy", "generate", "--quick", "--budget", "0.05", "--out", "best", "--json")
    answer = calm(p, p.run(*words, *agent(p, "summing"), limit=230)).is_("model")
    assert [("error" in t) for t in answer.json()["tracks"]] == [False, True], answer
    assert [f.name for f in (p.folder / "best").iterdir()] == ["running-generate-1.c"]
    p.run("optimize", "running", "--policy", "generate", "--set", "warmth=3", "--model", "builtin").is_("usage", "no parameter 'warmth'")
    p.run("optimize", "running", "--policy", "generate,nobody", "--model", "builtin").is_("usage", "no policy named nobody", "bestofn")


def test_one_answer_at_a_time(p):
    """A mailbox and --once: what ended is written while the rest waits."""
    file = warm(p, ROWS.replace("[running, summing]", "[running]"))
    box = p.folder / "box"
    words = (file, "--model", f"mailbox:{box}", "--once")
    calm(p, experiment(p, *words)).is_("pending", "0 of 2 tracks finished, 0 failed, 2 waiting", "waits: ")
    assert json.loads((p.folder / "out/results.json").read_text()) is not None and not list((p.folder / "out/best").iterdir())
    seen = set()
    for _ in range(8):
        for request in (box / "requests").glob("*.md"):
            if request.name not in seen:
                seen.add(request.name)
                (box / "replies").mkdir(exist_ok=True)
                (box / "replies" / request.name).write_text(DONE if "running/some" not in request.read_text() else NOTHING)
        answer = calm(p, experiment(p, *words))
        if answer.status != EXIT["pending"]:
            break
    answer.is_("ok", "2 of 2 tracks finished")
    assert len(list((p.folder / "out/best").glob("*.c"))) == 2
    assert all((p.folder / "out/best" / f.name).read_text() == "" for f in (p.folder / "out/best").glob("*.diff")), "nothing changed"


@flow.alone
def test_long_edges_that_were_derived_stay_when_another_fails(p):
    lineage = p.source / "library/lineages/conv2d-c.json"
    before = json.loads(lineage.read_text())
    paying = [i for i, edge in enumerate(before["edges"]) if edge["pays"]]
    one, edge = paying[0], before["edges"][paying[0]]
    lines = [dict(schema="klineage/recording", version=1, model="claude-haiku-5-5", command="lineage rederive", note=""),
             dict(slot=f"rederive/{one + 1}/rederive {edge['to']}/0", text=whole(edge["forward"]["source"], edge["action"])),
             dict(slot=f"rederive/{one + 1}/rederive 1/0", text=whole(edge["forward"]["source"], edge["action"]))]
    model = "replay:" + p.write("edges.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    answer = p.run("lineage", "rederive", lineage, "--quick", "--model", model, "--out", "l.json", limit=230)
    if "platform" in answer.err or "does not pass the gate here" in answer.err:
        raise Skip("the lineage was walked on another kind of machine")
    calm(p, answer).is_("usage", f"edge {paying[1] + 1} was not re-derived", "the recording has no answer for the slot")
    after = json.loads((p.folder / "l.json").read_text())
    assert after["id"] != before["id"] and after["edges"][one]["forward"]["witness"] in ("alone", "failed")
    assert [after["edges"][i] for i in paying[1:]] == [before["edges"][i] for i in paying[1:]], "an edge that was not tried changed"


@flow.alone
def test_long_killed_and_gone_on_with(p):
    file = plan(p)
    model = script(p)
    left_alone = p.folder / "left-alone.db"
    calm(p, experiment(p, file, "--model", model, "--store", left_alone), left_alone).is_("ok")
    (run,) = rows(left_alone, "SELECT id FROM run")[0]
    reference = kept(left_alone, run)
    for i in range(6):
        process = start(p, "experiment", file, "--model", model, "--jobs", "2", "--out", "out")
        time.sleep(0.4 + 0.5 * i)
        below = flow.children(process.pid)
        process.kill()
        process.communicate()
        until = time.monotonic() + 20
        while any(pathlib.Path(f"/proc/{pid}").exists() for pid in below) and time.monotonic() < until:
            time.sleep(0.02)
    calm(p, experiment(p, file, "--model", model, "--jobs", "2")).is_("ok", "4 of 4 tracks finished")
    mine = kept(database(p), run)
    verdicts = ("verdict", "ratio", "low", "high", "median_ns", "why", "gain", "gain_low", "gain_high", "gain_floor", "call")  # measured anew
    def told(steps):
        return [(track, n, {k: v for k, v in step.items() if k not in verdicts}) for track, n, step in steps]
    assert told(mine[0]) == told(reference[0])
    asks = [[e[:6] for e in effects if e[2] == "ask" and e[3] == "generate"] for effects in (mine[1], reference[1])]
    assert [(e[1], e[4]) for e in asks[0]] == [(e[1], e[4]) for e in asks[1]], "another number of calls"
    charges = rows(database(p), "SELECT effect, state FROM charge")
    assert {s for _, s in charges} == {"settled"} and len({e for e, _ in charges}) == len(charges), charges


def test_interrupted_says_how_to_go_on(p):
    file = warm(p)
    with serving(p, [DONE] * 9, "never") as server:
        process = start(p, "experiment", file, "--model", HAIKU, "--jobs", "2", "--out", "out", env={"ANTHROPIC_API_KEY": KEY})
        until = time.monotonic() + 40
        while len(server.requests()) < 2 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        answer = flow.finish(process, 60)
    assert answer.status == EXIT["interrupted"] and "re-run" in answer.err, answer


def test_table_on_a_terminal(p):
    """Redrawn in place, without lines of the tracks between, and gone when the result is there."""
    file = warm(p)
    main, other = pty.openpty()
    words = [p.program, "experiment", file, "--model", script(p), "--jobs", "2"]
    process = subprocess.Popen(words, env={**p.env, "TERM": "xterm"}, cwd=p.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=other)
    os.close(other)
    seen = b""
    while process.poll() is None:
        if select.select([main], [], [], 0.1)[0]:
            try:
                seen += os.read(main, 65536)
            except OSError:
                break
    out = process.stdout.read().decode()
    process.wait()
    calm(p, flow.Answer(process.returncode, out, seen.decode())).is_("ok", "4 of 4 tracks finished")
    text = seen.decode()
    assert "of 4 ended" in text and "running/generate/1" in text and "\x1b[6A\r\x1b[J" in text, repr(text)
    assert "[running/generate/1]" not in text, "a track spoke between the lines of the table"
    assert text.rstrip().endswith("\x1b[J") or text.rindex("\x1b[J") > text.rindex("of 4 ended"), "the table stayed"


# ---- running -------------------------------------------------------------------------------------------------------------------


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
