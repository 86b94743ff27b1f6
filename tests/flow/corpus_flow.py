#!/usr/bin/env python3
"""corpus_flow.py - packages become tasks, and everything that must not be one is named with its reason.

usage: as flow.py.  What runs candidates needs PyTorch, in $KLINEAGE_PYTHON or python3, and says so where it is skipped.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import signal
import subprocess
import sys
import time

import corpus_packages as packages
import flow
from import_flow import needs_torch, without_torch


def package(p, name, files):
    folder = p.folder / name
    folder.mkdir(parents=True)
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


def good(p):
    return package(p, "shapely", {n: t.replace("{marker!r}", repr(str(p.folder / "marker"))) for n, t in packages.GOOD.items()})


def made(p, *sources, options=(), env=None):
    return p.run("corpus", *sources, "--out", "out", "--jobs", "2", *options, limit=280, env=env)


def rows(p):
    return {r["id"].split(":")[-1]: r for r in map(json.loads, (p.folder / "out/funnel.jsonl").read_text().splitlines())}


def static_half(p):
    """src/task/corpus as a module: the half that only reads needs no PyTorch."""
    for part in ("import", "corpus"):
        sys.path.insert(0, str(p.source / "src/task" / part))
    import front
    return front


# ---- read ------------------------------------------------------------------------------------------------------------

def test_a_closure_is_one_file_that_needs_torch_alone(p):
    front = static_half(p)
    found, jobs, licence = front.of_source(str(good(p)))
    texts = {j["name"]: j["text"] for j in jobs}
    assert {"Gate", "ScaledNorm", "softened", "spread"} >= set(texts) >= {"Gate", "ScaledNorm", "softened"}, (texts, found)
    assert all(j["licence"] == "MIT" for j in jobs) and licence == packages.MIT
    for text in texts.values():
        compile(text, "closure", "exec")
        assert "shapely" not in text and "from ." not in text, text
    assert "OFFSET" in texts["Gate"] and "def spread" in texts["ScaledNorm"] and "HALF" in texts["ScaledNorm"] and "helpers." not in texts["ScaledNorm"]
    assert not (p.folder / "marker").exists(), "the package was imported"


def test_what_cannot_be_read_is_named(p):
    front = static_half(p)
    found, jobs, _ = front.of_source(str(package(p, "bad", packages.bad_package(p.folder / "outside"))))
    said = {r["id"].split(":")[-1].lower().replace("_", ""): r for r in found if r["reason"]}
    for name, (_, stage, why) in packages.BAD.items():
        if stage == "closed":
            assert said[name.lower()]["stage"] == stage and why in said[name.lower()]["reason"], (name, said.get(name.lower()))
    assert "not Python" in said["broken"]["reason"], said
    assert len(jobs) == sum(stage != "closed" for _, stage, _ in packages.BAD.values()), [j["id"] for j in jobs]


def test_a_licence_that_forbids_is_refused(p):
    front = static_half(p)
    for name, text, why in (("copyleft", packages.GPL, "GPL"), ("silent", "", "none is said"), ("closed", "Proprietary. For evaluation only.", "proprietary")):
        found, jobs, _ = front.of_source(str(package(p, name, {"LICENSE": text, "m.py": packages.COPIES["copies.py"]})))
        assert not jobs and found[0]["stage"] == "licensed" and why in found[0]["detail"], found
    files = {"LICENSE": packages.MIT, "m.py": "# Licence: GNU Lesser General Public License; see LICENSE\n" + packages.COPIES["copies.py"]}
    found, jobs, _ = front.of_source(str(package(p, "mixed", files)))
    assert not jobs and "LGPL" in found[-1]["detail"], found


def test_near_duplicates_are_found(p):
    static_half(p)
    import alike
    one = "import torch\n\ndef f(x, top):\n    return torch.tanh(x / top) * top + 1\n"
    other = "import torch\n\ndef g(values, roof):\n    return torch.tanh(values / roof) * roof + 1\n"
    kinds = alike.Duplicates(minhash=False)
    assert kinds.of("one", one) == ("", "") and kinds.of("other", other) == ("one", "the same tree")
    assert kinds.of("third", one.replace("+ 1", "+ 2")) == ("", "")
    if alike.has_minhash():
        body = "".join(f"    x = torch.relu(x * {i}.5) + torch.sigmoid(x)\n" for i in range(60))
        kinds = alike.Duplicates(minhash=True)
        long = f"import torch\n\ndef f(x):\n{body}    return x\n"
        assert kinds.of("long", long) == ("", "") and kinds.of("longer", long.replace("    return x", "    return x * 2"))[0] == "long"


def test_clusters_are_of_like_operators(p):
    static_half(p)
    import alike
    of = alike.clusters([("a", "normalization", ["pow", "mean", "add", "rsqrt", "mul", "mul"]), ("b", "normalization", ["pow", "mean", "add", "rsqrt", "mul"]),
                         ("c", "normalization", ["native_layer_norm"]), ("d", "matmul", ["mm"])])
    assert of == {"a": "a", "b": "a", "c": "c", "d": "d"}, of
    assert alike.family(["mm", "relu"]) == "matmul" and alike.family(["view", "permute"]) == "movement" and alike.family(["tanh", "mul"]) == "activation"


# ---- tried -----------------------------------------------------------------------------------------------------------

def test_packages_become_tasks(p):
    needs_torch()
    answer = made(p, good(p), package(p, "copies", packages.COPIES), options=("--json",)).is_("ok").json()
    said = rows(p)
    assert not (p.folder / "marker").exists(), "the package was imported"
    assert said["softly"]["reason"] == "a near-duplicate" and "shapely.norm:softened" in said["softly"]["detail"], said["softly"]
    for name in ("Gate", "ScaledNorm", "softened", "row_peaks"):
        assert said[name]["stage"] == "admitted" and said[name]["reason"] is None, said[name]
        folder = p.folder / "out" / said[name]["task"]
        assert (folder / "LICENSE").read_text() == packages.MIT and (folder / "naive.c").exists() and (folder / "naive.cu").exists()
        assert "licence:MIT" in json.loads((folder / "definition.json").read_text())["tags"]
    assert answer["admitted"] == sum(r["stage"] == "admitted" and not r["reason"] for r in said.values()) >= 4
    left = {s["stage"]: s["left"] for s in answer["stages"]}
    assert left["admitted"] == answer["admitted"] <= left["checked"] <= left["imported"] <= left["runs"] <= left["kept"] <= left["distinct"] < left["closed"], left
    shown = p.run("task", "show", f"out/{said['ScaledNorm']['task']}").is_("ok", "body_weight").out
    assert shown.count("hidden") >= 2, shown
    p.run("task", "check", f"out/{said['Gate']['task']}", limit=120).is_("ok", "admitted: its check rejects")
    made(p, p.folder / "shapely", p.folder / "copies").is_("ok", "stage", "done before")


def test_each_bad_input_is_named_and_the_rest_goes_on(p):
    needs_torch()
    outside = p.folder / "outside"
    files = {**packages.bad_package(outside), "fine.py": packages.COPIES["copies.py"]}
    made(p, package(p, "bad", files), "no-such-package", package(p, "copyleft", {"LICENSE": packages.GPL, "m.py": "x = 1\n"}),
         env={"KLINEAGE_CORPUS_SECONDS": "20"}).is_("ok", "no-such-package: no folder and no installed package")
    said = {name.lower().replace("_", ""): r for name, r in rows(p).items()}
    for name, (_, stage, why) in packages.BAD.items():
        row = said.get(name.lower(), said.get("takesareader"))
        assert row["stage"] == stage and why in row["reason"], (name, row)
    assert not outside.exists(), "what was tried wrote outside its folder"
    assert said["copyleft"]["reason"].startswith("the licence") and said["no-such-package"]["reason"] == "not found"
    assert said["softly"]["stage"] == "admitted" and said["softly"]["reason"] is None, said["softly"]


def earlier_tasks_are_held_out_too(p):
    """What the list names is no task, whatever an earlier run made of it; what it no longer names is one again."""
    made(p, p.folder / "copies").is_("ok")
    tasks = {name: row["task"] for name, row in rows(p).items() if row.get("task")}
    assert {"softly", "row_peaks"} <= set(tasks) and all((p.folder / "out" / t).is_dir() for t in tasks.values()), tasks
    made(p, p.folder / "copies", options=("--held-out", "held-out.txt"))
    said = rows(p)
    assert {said[n]["reason"] for n in ("softly", "row_peaks")} == {"held out"} and not said["row_peaks"].get("task"), said
    assert not (p.folder / "out" / tasks["softly"]).exists() and not (p.folder / "out" / tasks["row_peaks"]).exists()


def test_held_out_names_and_operators_become_no_tasks(p):
    needs_torch()
    p.write("held-out.txt", "# of the next experiment\nsoft*ly\n_softmax   # an operator of torch\n")
    made(p, package(p, "copies", packages.COPIES), options=("--held-out", "held-out.txt"))
    said = rows(p)
    assert said["softly"]["reason"] == "held out" and said["row_peaks"]["reason"] == "held out" and "_softmax" in said["row_peaks"]["detail"], said
    assert not list((p.folder / "out/tasks").glob("*softly*")) and not list((p.folder / "out/tasks").glob("*row_peaks*"))
    earlier_tasks_are_held_out_too(p)
    made(p, p.folder / "copies", options=("--held-out", "nowhere.txt")).is_("usage", "nowhere.txt")


# ---- stopped ---------------------------------------------------------------------------------------------------------

def begun(p, lines):
    """A run that has done a few candidates, still going on."""
    text = "import torch\n\n" + "\n\n".join(f"def f{i}(x):\n    return torch.{op}(x) * {i}.5 + torch.{op}(x + {i}) - torch.abs(x) * {i + 1}" for i, op in
                                              enumerate(("sin", "cos", "tanh", "sigmoid", "relu", "exp", "erf", "floor")))
    if not (p.folder / "many").exists():
        package(p, "many", {"LICENSE": packages.MIT, "many.py": text + "\n"})
    run = subprocess.Popen([p.program, "corpus", "many", "--out", "out", "--jobs", "1"], cwd=p.folder, env=p.env, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                           start_new_session=True)
    log, end = p.folder / "out/funnel.jsonl", time.monotonic() + 200
    while time.monotonic() < end and run.poll() is None and (not log.exists() or log.read_text().count("\n") < lines):
        time.sleep(0.05)
    assert run.poll() is None, run.communicate()
    return run


def of_group(run):
    """Processes of the run's session that are still there."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == run.pid and fields[0] != "Z":
            found.append(pid)
    return found


def none_left(run):
    end = time.monotonic() + 10
    while of_group(run) and time.monotonic() < end:
        time.sleep(0.1)
    assert not of_group(run), of_group(run)


def test_a_killed_run_goes_on_where_it_was(p):
    needs_torch()
    run = begun(p, 2)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    none_left(run)
    with open(p.folder / "out/funnel.jsonl", "a") as file:
        file.write('{"id": "many.many:f7", "kind": "fun')    # as a run that is killed leaves it
    done = (p.folder / "out/funnel.jsonl").read_text().count("\n")
    answer = p.run("corpus", "many", "--out", "out", "--jobs", "1", limit=280).is_("ok", f"8 candidates to try, {done} of them done before")
    said = rows(p)
    assert len(said) == 8 and all(r["stage"] == "admitted" and not r["reason"] for r in said.values()), said
    assert "8 tasks in" in answer.out and len(list((p.folder / "out/tasks").iterdir())) == 8
    assert not (p.folder / "out/work").exists()


def test_an_interrupted_run_leaves_nothing_behind(p):
    needs_torch()
    run = begun(p, 1)
    os.kill(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=40)
    assert run.returncode == 130 and not out and b"the same command goes on" in err, (run.returncode, out, err)
    none_left(run)
    assert not (p.folder / "out/work").exists()


def test_what_is_missing_is_said(p):
    """Before anything is written."""
    copies = package(p, "copies", packages.COPIES)
    made(p, copies, env=without_torch(p)).is_("no_device", "PyTorch is needed", "python3 -m pip install torch")
    p.run("corpus", copies).is_("usage", "there is no --out")
    made(p, "nothing-of-this-name").is_("no_device" if not torch_here() else "usage")
    made(p, copies, options=("--held-out", "nowhere.txt")).is_("usage", "nowhere.txt")
    assert not (p.folder / "out").exists()


def test_none_are_tried_where_at_most_none_are_asked_for(p):
    needs_torch()
    answer = made(p, package(p, "copies", packages.COPIES), options=("--most", "0", "--json")).is_("refused").json()
    assert answer["untried"] == 2 and answer["admitted"] == 0 and not (p.folder / "out/tasks").exists(), answer


def test_a_package_that_is_refused_is_counted_as_no_candidate(p):
    needs_torch()
    (p.folder / "empty").mkdir()
    silent = package(p, "silent", {f"{n}.py": packages.COPIES["copies.py"] for n in "abc"})
    said = made(p, silent, "empty").is_("refused", "left out: the licence is not one that allows it").out
    assert "-1" not in said and said.count("left out:") == 2, said
    answer = made(p, silent, "empty", options=("--json",)).is_("refused").json()
    assert not [s for s in answer["stages"] if s["left"] or s["reasons"]] and all("licence" in m["left_out"] for m in answer["packages"]), answer


def torch_here():
    try:
        needs_torch()
        return True
    except flow.Skip:
        return False


def main():
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
