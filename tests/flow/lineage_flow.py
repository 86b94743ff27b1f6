#!/usr/bin/env python3
"""lineage_flow.py - a walk as a user meets it, with recorded proposals and a live gate: resumed, exported, carried, limited.

Driven like flow.py, whose Place it shares.  The first test walks live, on this machine; tests that are not about measuring begin with a journal that
holds its verdicts and nothing else.  SPDX-License-Identifier: Apache-2.0
"""
import json
import pathlib
import re
import subprocess
import sys

import flow
from loop_place import begin_with, bytes_of

SHAPE = ("--workload", "M=64,N=64,K=64", "--quick")
HEAD = "#include <stddef.h>\n#include <stdint.h>\n\n"
# Loops in the order of memory over a turned copy of weight; without the copy and the order it is the naive kernel.
EXPERT = """// Matrix product with the innermost loop along N.
//! buffer turned: f32[K, N]
//! launch gemm args(x, weight, y, turned, M, N, K)
""" + HEAD + """void gemm(const float *x, const float *weight, float *y, float *turned, int32_t M, int32_t N, int32_t K)
{
    for (int32_t j = 0; j < N; j++)
        for (int32_t k = 0; k < K; k++)
            turned[(size_t)k * N + j] = weight[(size_t)j * K + k];
    for (int32_t i = 0; i < M; i++) {
        for (int32_t j = 0; j < N; j++)
            y[(size_t)i * N + j] = 0;
        for (int32_t k = 0; k < K; k++)
            for (int32_t j = 0; j < N; j++)
                y[(size_t)i * N + j] += x[(size_t)i * K + k] * turned[(size_t)k * N + j];
    }
}
"""
SIMPLE = """// Matrix product.
//! launch gemm args(x, weight, y, M, N, K)
""" + HEAD + """void gemm(const float *x, const float *weight, float *y, int32_t M, int32_t N, int32_t K)
{
    for (int32_t i = 0; i < M; i++)
        for (int32_t j = 0; j < N; j++) {
            float sum = 0;
            for (int32_t k = 0; k < K; k++)
                sum += x[(size_t)i * K + k] * weight[(size_t)j * K + k];
            y[(size_t)i * N + j] = sum;
        }
}
"""
UNDO = "ACTION: layout_blocked\nLOCUS: gemm()\nWHY: read weight where it lies\nBUNDLE: loop_order\n```c\n%s```\n"


def recording(p, *calls):
    """A script by hand: (slot, text) in order."""
    lines = [dict(schema="klineage/recording", version=1, model="none", command="walk", note="made by this test; no model answered")]
    lines += [dict(slot="walk/" + slot, text=text) for slot, text in calls]
    return "replay:" + p.write("calls.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def walk(p, model, *options, source=EXPERT):
    """The answer of a walk, which a busy machine does not end: states need no time, and a recording decides what cannot be told."""
    return p.run("walk", "gemm", p.write("expert.c", source), *SHAPE, "--model", model, *options, limit=200)


def whole(p):
    return recording(p, ("deoptimize 1/0", "I cannot tell."), ("deoptimize 1/1", UNDO % SIMPLE), ("rederive 1/0", UNDO % EXPERT),
                     ("deoptimize 2/0", "DONE: three plain loops"))


def warm(p):
    """Begin with the verdicts of a whole walk."""
    sources = [p.source / "src/lineage/attempt.c", *(p.source / "tasks/gemm").rglob("*.*")]
    begin_with(p, "lineage", (EXPERT + SIMPLE).encode() + bytes_of(sources), lambda store: walk(p, whole(p), "--store", store).is_("ok", "complete"))


@flow.alone
def test_verdicts_to_begin_with(p):
    warm(p)


def test_walk_is_complete_kept_exported_and_resumed(p):
    warm(p)
    answer = walk(p, whole(p), "--out", p.folder / "l.json").is_("ok", "complete: three plain loops", "layout_blocked")
    document = json.loads((p.folder / "l.json").read_text())
    assert document["termination"]["how"] == "complete" and len(document["edges"]) == 1, document["termination"]
    edge = document["edges"][0]
    assert edge["forward"]["hash"] == document["states"][1]["hash"] and not edge["forward"]["mechanical"]
    assert edge["rejections"][0]["symptom"].startswith("no_edit: ")
    for key in [s["verdict"] for s in document["states"]] + [edge["gain"]["verdict"], edge["forward"]["verdict"]]:
        p.run("verdict", "show", key).is_("ok")

    again = walk(p, whole(p), "--max-steps", "5").is_("ok")
    assert document["id"][:12] in again.out, f"resuming made another lineage: {again}\n{answer}"
    assert "step 1" not in again.err, f"resuming asked or judged again: {again}"

    p.run("lineage", "list").is_("ok", "gemm-c-expert", "complete")
    assert p.run("lineage", "show", "gemm-c-expert", "--json").is_("ok").json() == document
    p.run("lineage", "export", "gemm-c-expert", "--git", "lesson").is_("ok", "2 commits")
    p.run("lineage", "export", "gemm-c-expert", "--git", "lesson").is_("usage", "folder exists")
    assert (p.folder / "lesson/kernel.c").read_text() == EXPERT
    log = subprocess.run(["git", "-C", p.folder / "lesson", "log", "--format=%B"], capture_output=True, text=True, check=True).stdout
    assert edge["gain"]["verdict"] in log and "makes this very kernel" in log, log

    p.run("lineage", "import", p.folder / "l.json", "--store", p.folder / "other.db").is_("ok", document["id"][:12])
    p.run("lineage", "show", document["id"][:8], "--store", p.folder / "other.db").is_("ok", "layout_blocked")
    document["edges"][0]["gain"]["ratio"] *= 2
    p.run("lineage", "import", p.write("lie.json", json.dumps(document))).is_("usage", "changed after it was made")


def worker(p):
    """One visit to the host that serves the spool `s`, with nothing but the worker: jobs judged, and times that did not settle."""
    program = pathlib.Path(p.program).with_name("klineage-worker")
    done = subprocess.run([program, "--spool", "s"], cwd=p.folder, env=p.env, capture_output=True, text=True, timeout=200)
    said = re.search(r"(\d+) done, 0 failed", done.stdout + done.stderr)
    assert done.returncode == 0 and said, f"{done}"
    return int(said[1]), (done.stdout + done.stderr).count(" unstable ")


def visits(p, judged, walk_on):
    """Visits until the walk is complete: those of `judged`, and more only where a busy machine did not settle a time."""
    seen = []
    while (answer := walk_on()).status == flow.EXIT["pending"]:
        answer.is_("pending", "klineage-worker --spool s")
        walk_on().is_("pending")  # asked again it puts nothing new
        seen.append(worker(p))
        assert len(seen) <= 4 * len(judged), f"no end: {seen}"
    assert any(unsettled for _, unsettled in seen) or [n for n, _ in seen] == judged, seen
    return answer


@flow.alone
def test_walk_through_a_spool(p):
    """A visit for the expert and naive, one for each step: the race goes with the verdict that it waits for."""
    step = ("--spool", "s", "--once", "--out", p.folder / "l.json")
    visits(p, [2, 2], lambda: walk(p, whole(p), *step)).is_("ok", "complete: three plain loops")
    edge = json.loads((p.folder / "l.json").read_text())["edges"][0]
    assert edge["gain"]["ratio"] > 1 and edge["forward"]["hash"], edge
    for key in (edge["gain"]["verdict"], edge["forward"]["verdict"]):
        p.run("verdict", "show", key).is_("ok")
    assert worker(p) == (0, 0)
    (p.folder / "s").rename(p.folder / "elsewhere")
    walk(p, whole(p), *step).is_("ok")  # out of the journal, whatever became of the folder
    assert not (p.folder / "s").exists()


@flow.alone
def test_builtin_walks_through_a_spool(p):
    faster = SIMPLE.replace("            for (int32_t k", "#pragma omp simd reduction(+:sum)\n            for (int32_t k")
    visits(p, [2, 2], lambda: walk(p, "builtin", "--spool", "s", "--once", source=faster)).is_("ok", "simd_pragma", "mechanical")


def test_walk_of_a_gpu_kernel_needs_no_gpu_here(p):
    expert = p.source / "experts/topk/cuda/2-radix-select.cu"
    task = ("walk", "topk", expert, "--workload", "paper", "--model", "builtin", "--spool", "s", "--once")
    p.run(*task).is_("pending")
    p.run(*task).is_("pending")
    queue = p.run("spool", "s", "--json").is_("ok").json()
    assert queue["counts"] == {"todo": 2, "taken": 0, "done": 0}, queue


def test_walk_that_ends_early_says_how_to_go_on(p):
    warm(p)
    model = recording(p, ("deoptimize 1/0", "no"), ("deoptimize 1/1", "DONE: believe me"), ("deoptimize 1/2", "no"))
    walk(p, model, "--max-rejections", "2").is_("no", "rejection_limit", "not_naive: still has", "another --trial")
    walk(p, model).is_("no", "stopped", "the recording ends here", "re-run the same command to continue")


@flow.alone
def test_judge_times_every_edge_again(p):
    warm(p)
    walk(p, whole(p), "--out", p.folder / "l.json").is_("ok")
    before = json.loads((p.folder / "l.json").read_text())
    answer = p.run("lineage", "judge", p.folder / "l.json", "--quick", "--out", p.folder / "now.json", "--json", limit=200)
    assert answer.status in (0, 1), answer
    found, now = answer.json(), json.loads((p.folder / "now.json").read_text())
    (edge,), (was,) = now["edges"], before["edges"]
    assert found["schema"] == "klineage/judged" and found["before"] == before["id"] and found["lineage"] == now["id"], found
    assert edge["gain"]["call"] == found["edges"][0]["call"] and edge["gain"]["verdict"] != was["gain"]["verdict"], edge
    assert edge["backward"] == was["backward"] and now["states"] == before["states"]
    assert (answer.status == 1) == (was["pays"] and not edge["pays"]), answer
    p.run("verdict", "show", edge["gain"]["verdict"]).is_("ok")
    p.run("lineage", "show", now["id"][:12]).is_("ok")
    p.run("lineage", "judge", p.folder / "l.json", "--quick", "--json").is_("ok" if answer.status == 0 else "no")  # out of the journal
    moved = {**before, "platform": "x86-64-v0/none"}
    assert "its id is not the hash" in p.run("lineage", "judge", p.write("moved.json", json.dumps(moved))).is_("usage").err


def test_judge_through_a_spool_puts_every_race_at_once(p):
    lineage = p.source / "library/lineages/gemm-c.json"
    edges = json.loads(lineage.read_text())["edges"]
    states = json.loads(lineage.read_text())["states"]
    races = sum(1 + bool(e["forward"] and e["forward"]["hash"] != states[e["to"]]["hash"]) for e in edges)
    p.run("lineage", "judge", lineage, "--spool", "s", "--once", limit=200).is_("pending")
    p.run("lineage", "judge", lineage, "--spool", "s", "--once", limit=200).is_("pending")  # asked again it puts nothing new
    queue = p.run("spool", "s", "--json").is_("ok").json()
    assert queue["counts"] == {"todo": races, "taken": 0, "done": 0}, (queue, races)


def test_walk_wrong_usage(p):
    kernel = p.write("expert.c", EXPERT)
    p.run("walk", "gemm", kernel).is_("usage", "no model given", "builtin")
    p.run("walk", "gemm", kernel, "--model", "builtin", "--recover", "2").is_("usage", "--recover is a share")
    p.run("walk", "gemm", kernel, "--model", "builtin", "--max-steps", "65").is_("usage", "at most 64")
    p.run("walk", "gemm", kernel, "--model", "builtin", "--workload", "nowhere").is_("usage", "no workload 'nowhere'")
    p.run("lineage", "show", "nothing").is_("usage", "klineage lineage list")
    p.run("lineage", "export", "nothing").is_("usage", "--git DIR or --out FILE")
    p.run("lineage", "import", p.write("x.json", "{}")).is_("usage", "this is no lineage")
    p.run("lineage", "list").is_("ok", "no lineages")


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
