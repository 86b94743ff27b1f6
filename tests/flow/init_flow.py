#!/usr/bin/env python3
"""init_flow.py - a task from nothing, and an expert kernel out of a library's sources.

usage: as flow.py.  The libraries are init_libraries.py.  Needs libclang; CUDA and Triton need their compilers, and no GPU.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import shutil
import sys

import extract_flow
import flow
import init_libraries as libraries


# ---- task new ----------------------------------------------------------------------------------------------------------

def test_a_new_task_is_sound_as_it_is(p):
    said = p.run("task", "new", "sums", "--out", "mine/sums").is_("ok", "next: klineage task check mine/sums").out
    for name in ("definition.json", "workloads.jsonl", "oracle.c", "naive.c", "README.md"):
        assert name in said and (p.folder / "mine/sums" / name).is_file(), said
    p.run("task", "check", "mine/sums").is_("ok", "admitted: its check rejects wrong kernels", "naive.c")
    assert json.loads((p.folder / "mine/sums/definition.json").read_text())["name"] == "sums"
    assert "Change next" in (p.folder / "mine/sums/oracle.c").read_text()
    p.gate("mine/sums/naive.c", "--check-only", task="mine/sums").is_("ok")


def test_a_new_task_goes_where_tasks_are(p):
    env = {"KLINEAGE_TASKS": str(p.folder / "ours")}
    answer = p.run("task", "new", "sums", "--json", env=env).is_("ok").json()
    assert answer["folder"] == str(p.folder / "ours/sums") and answer["like"] is None, answer
    p.run("task", "show", "sums", env=env).is_("ok", "rows", "cols")
    p.run("task", "new", "sums", env=env).is_("usage", "there is a task of this name", "--like sums")
    p.run("task", "new", "others", env={"KLINEAGE_TASKS": ""}).is_("ok", "next: klineage task check tasks/others")


def test_a_new_task_like_another(p):
    answer = p.run("task", "new", "masked", "--like", "softmax", "--out", "masked", "--json").is_("ok").json()
    assert answer["like"] == "softmax" and {"naive.c", "oracle.cu", "baseline/onednn.c"} <= set(answer["files"]), answer
    text = (p.folder / "masked/definition.json").read_text()
    assert text == (p.source / "tasks/softmax/definition.json").read_text().replace('"name": "softmax"', '"name": "masked"', 1)
    p.gate(p.folder / "masked/naive.c", "--check-only", "--workload", "tiny", task="masked").is_("ok")
    p.run("task", "new", "copy", "--like", "softmaxx").is_("usage", "did you mean softmax?")


def test_names_that_cannot_be(p):
    for name in ("../up", "Big", "a-b", "a b", "9lives", "", "x" * 64, "tasks/x"):
        p.run("task", "new", name).is_("usage", "this cannot be the name of a task", "a small letter")
    p.run("task", "new", "softmax").is_("usage", "there is a task of this name")
    (p.folder / "full").mkdir()
    (p.folder / "full/file").write_text("mine")
    p.run("task", "new", "sums", "--out", "full").is_("usage", "exists and is not empty")
    assert sorted(f.name for f in p.folder.iterdir() if f.name not in ("state", "cache")) == ["full"], "nothing is half-written"


# ---- init: C -----------------------------------------------------------------------------------------------------------

def sums(p):
    """A task of two axes: the sum of squares of every row of x."""
    p.run("task", "new", "sums", "--out", "sums").is_("ok")
    return "sums"


def library(p, name):
    """The files of a library, and its main one."""
    for file, text in getattr(libraries, name).items():
        path = p.folder / name.lower() / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return f"{name.lower()}/{next(iter(getattr(libraries, name)))}"


def init(p, task, source, function, *options, limit=200):
    answer = p.run("init", task, "--from", source, "--function", function, *options, limit=limit)
    if "no libclang" in answer.err:
        raise flow.Skip("no libclang: apt-get install libclang-dev")
    return answer


def test_a_function_comes_with_what_it_needs_alone(p):
    task, source = sums(p), library(p, "NORMS")
    init(p, task, source, "norms_rows", "--args", "out=y,n=cols", "--flags", "-Inorms/include -DNORMS_GAIN=1", "--upstream", "norms 1.2, commit 1234567",
         "--check-only", "--out", "mine.c").is_("ok", "mine.c is the kernel", "next: klineage gate sums mine.c")
    text = (p.folder / "mine.c").read_text()
    for needed in ("//! launch norms_rows args(x, y, i64(rows), cols)", "square(", "struct row", "typedef float norm_t", "#define GAIN", "#define NORMS_GAIN 1",
                   "static const float unit[2]", "#include <math.h>", "#pragma GCC optimize", "norms_trace", "enum mode"):
        assert needed in text, (needed, text)
    for left_out in ("unrelated", "string.h", "#ifdef", "slow path", "UNUSED", '#include "norms.h"', "-Inorms", "//! flags -O0"):
        assert left_out not in text, (left_out, text)
    for recorded in ("norms 1.2, commit 1234567", "licence   MIT", "lines differ", "Copyright (c) 2019 The Norms Project"):
        assert recorded in text, (recorded, text)
    p.gate("mine.c", "--check-only", task=task).is_("ok")


def test_the_record(p):
    answer = init(p, sums(p), library(p, "NORMS"), "norms_rows", "--args", "out=y,n=cols", "--flags", "-Inorms/include -DNORMS_GAIN=1 -Wall -g -fPIC",
                  "--check-only", "--json").is_("ok").json()
    assert answer["licence"] == "MIT" and answer["differences"] == [] and answer["verdict"]["outcome"] == "pass", answer
    assert 0 < answer["edits"] < answer["upstream_lines"], answer
    assert {row["file"] for row in answer["from"]} == {"norms/norms.c", "norms/include/norms.h"}, answer["from"]


def test_static_functions_can_be_launched(p):
    init(p, sums(p), library(p, "STATIC"), "sum_rows", "--check-only", "--out", "mine.c").is_("ok")
    text = (p.folder / "mine.c").read_text()
    assert "launch sum_rows_entry args(x, y, rows, cols)" in text and "static inline void sum_rows(" in text, text


def test_what_real_libraries_write(p):
    init(p, sums(p), library(p, "PASTED"), "pasted_rows", "--check-only", "--out", "mine.c").is_("ok")
    text = (p.folder / "mine.c").read_text()
    for needed in ("#define STEP_one", "#define TAIL", "extern const float far_table[2];", "#include <emmintrin.h>"):
        assert needed in text, (needed, text)


def test_functions_over_several_files(p):
    library(p, "SPREAD")
    init(p, sums(p), "spread/rows.c", "spread_rows", "--check-only").is_("refused", "rows.c:", "calls spread_one", "defined in none of the sources", "--from")
    answer = p.run("init", "sums", "--from", "spread/rows.c", "spread/one.c", "--function", "spread_rows", "--check-only", "--json", limit=200).is_("ok").json()
    assert {row["file"] for row in answer["from"]} == {"spread/rows.c", "spread/one.c", "spread/one.h"}, answer["from"]


def test_a_function_of_ones_own_calls_the_librarys(p):
    """The library's returns its result; what --with names stores it."""
    task, source = sums(p), library(p, "RETURNS")
    init(p, task, source, "row_sum", "--check-only").is_("refused", "returns its result (float)", "--with")
    adapter = p.write("adapter.c", "void rows_of(const float *x, float *y, int rows, int cols)\n"
                      "{\n    for (int i = 0; i < rows; i++) y[i] = row_sum(x + (long)i * cols, cols);\n}\n")
    init(p, task, source, "rows_of", "--with", adapter, "--check-only", "--out", "mine.c").is_("ok")
    assert "adapter.c, which is not the library's" in (p.folder / "mine.c").read_text()


def test_what_cannot_be_sliced_is_refused(p):
    task, source = sums(p), library(p, "REFUSED")
    for function, *words in libraries.REFUSED_WHY:
        init(p, task, source, function, "--out", "mine.c").is_("refused", "not taken:", *words)
    init(p, task, source, "nothing_of_it").is_("refused", "no function nothing_of_it is defined", "through_a_table")
    init(p, task, source, "plain", "--args", "q=y").is_("refused", "has no parameter q; it has x, y, rows, cols")
    init(p, task, source, "plain", "--flags", "-O2 -fplugin=evil.so").is_("refused", "not taken: --flags: flag '-fplugin=evil.so' is not on the allow-list")
    init(p, task, source, "plain", "--library-flags", "-fplugin=evil.so").is_("refused", "not taken: --library-flags: flag '-fplugin=evil.so'")
    init(p, task, source, "plain", "--require", "rows %% 8").is_("refused", "not taken: --require: ")
    broken = p.write("broken.c", "void f(float *x) { x[0] = ; }\n")
    init(p, task, broken, "f").is_("refused", "broken.c:1:", "error: expected expression")
    init(p, task, "nowhere.c", "f").is_("refused", "nowhere.c", "no such file")
    assert not (p.folder / "mine.c").exists(), "nothing is half-written"


def test_a_library_that_computes_something_else(p):
    task, source = sums(p), library(p, "STATIC")
    said = init(p, task, source, "max_rows", "--check-only", "--out", "mine.c").is_("wrong", "the library's own function does not pass", "--args")
    assert "differs" not in said.out, said    # the slice was not looked at
    assert not (p.folder / "mine.c").exists(), str(said)


def test_another_mechanism_is_named(p):
    """The library is built with its own flags; what its compiler made of it differs from what ours made."""
    answer = init(p, sums(p), library(p, "STATIC"), "scale_free", "--flags", "-O3 -ffast-math -march=x86-64-v3", "--library-flags",
                  "-O1 -march=x86-64-v2", "--check-only", "--out", "mine.c", "--json").is_("no").json()
    assert "vector256" in [d["feature"] for d in answer["differences"]] and "other kinds of instructions" in answer["refused"], answer
    assert not (p.folder / "mine.c").exists()


@flow.alone
def test_side_by_side(p):
    """The lower end decides, whatever it is on this machine."""
    answer = init(p, sums(p), library(p, "STATIC"), "sum_rows", "--out", "mine.c", "--workload", "rows=64,cols=1024", "--json").json()
    compared = answer["verdict"]["time"]["vs"][0] if answer["verdict"]["time"] else None
    if answer["verdict"]["outcome"] == "unstable":
        raise flow.Skip("this machine is too busy: no time settled")
    good = compared["low"] >= 0.99
    assert answer["ok"] == good == (p.folder / "mine.c").exists(), answer
    assert good or "its speed is not shown" in answer["refused"], answer


def test_what_is_there_is_not_replaced_unasked(p):
    task, source = sums(p), library(p, "STATIC")
    mine = p.folder / "mine.c"
    mine.write_text("mine")
    init(p, task, source, "sum_rows", "--check-only", "--out", "mine.c").is_("usage", "mine.c", "this exists already", "--force")
    init(p, task, source, "sum_rows", "--check-only", "--out", "static", "--force").is_("usage", "this is a folder")
    assert mine.read_text() == "mine"
    init(p, task, source, "sum_rows", "--check-only", "--out", "mine.c", "--force").is_("ok")
    assert "sum_rows" in mine.read_text()


def test_recipes(p):
    task, source = sums(p), library(p, "NORMS")
    (p.folder / "recipes").mkdir()
    recipe = p.write("recipes/norms.recipe", "# how to\ntask: ../sums\nfrom: norms.c\n"
                     "function: norms_rows\nargs: out=y\nargs: n=cols\nflags: -Iinclude\nflags: -DNORMS_GAIN=1\nupstream: norms 1.2\n")
    said = p.run("init", "--recipe", recipe, "--in", "norms", "--check-only", "--out", "mine.c", limit=200)
    if "no libclang" in said.err:
        raise flow.Skip("no libclang: apt-get install libclang-dev")
    said.is_("ok")
    assert "norms 1.2" in (p.folder / "mine.c").read_text() and task and source
    p.run("init", "--recipe", recipe, "--in", "norms", "--args", "out=x", "--check-only").is_("refused", "n is 'int'")
    bad = p.write("bad.recipe", "task: sums\nform: norms.c\n")
    p.run("init", "--recipe", bad).is_("usage", "bad.recipe:2:1", "not known", "keys: task from")
    p.run("init", "--recipe", "none.recipe").is_("usage", "none.recipe")
    p.run("init", "sums").is_("usage", "--from SOURCE is missing")
    p.run("init").is_("usage", "TASK is missing")


def recipes(p):
    return sorted(f.parent for f in (p.source / "examples/recipes").glob("*/recipe"))


def test_recipes_of_the_repository(p):
    """They are read, and their tasks are sound; none of a library's code lies beside them."""
    assert len(recipes(p)) >= 3
    for folder in recipes(p):
        if (folder / "task").is_dir():
            p.run("task", "check", folder / "task").is_("ok", "admitted: its check rejects wrong kernels")
        said = p.run("init", "--recipe", folder / "recipe", "--in", ".", limit=200)
        if "no libclang" in said.err:
            raise flow.Skip("no libclang: apt-get install libclang-dev")
        said.is_("refused", "no such file")


def test_recipes_where_their_sources_are(p):
    sources = os.environ.get("KLINEAGE_RECIPE_SOURCES")
    if not sources:
        raise flow.Skip("KLINEAGE_RECIPE_SOURCES names no folder that holds NAME, a library's sources, for a recipe NAME")
    for folder in recipes(p):
        if (pathlib.Path(sources) / folder.name).is_dir():
            said = p.run("init", "--recipe", folder / "recipe", "--in", pathlib.Path(sources) / folder.name, "--check-only", "--out", folder.name, limit=300)
            assert said.status in (0, 11) and (p.folder / folder.name).is_file(), str(said)


def test_without_libclang(p):
    sums(p)
    library(p, "STATIC")
    p.run("init", "sums", "--from", "static/rows.c", "--function", "sum_rows", env={"KLINEAGE_LIBCLANG": "/nothing.so"}).is_("no_device", "libclang-dev")
    p.run("init", "sums", "--from", "static/rows.c", "--function", "sum_rows", env={"KLINEAGE_PYTHON": "/nothing"}).is_("no_device", "KLINEAGE_PYTHON")


# ---- init: CUDA and Triton ---------------------------------------------------------------------------------------------

def test_cuda_is_launched_as_its_library_launches_it(p):
    if not shutil.which("nvcc"):
        raise flow.Skip("no CUDA compiler: nothing can be compiled")
    if p.has("cuda"):
        raise flow.Skip("a GPU is here: what a host without one says cannot be seen")
    source = library(p, "DEVICE")
    answer = init(p, "softmax", source, "softmax_rows", "--args", "out=output,inp=x,N=rows,C=cols", "--out", "mine.cu", "--json").is_("pending").json()
    assert answer["launch"] == "launch softmax_rows grid(cdiv(rows, 4)) block(32, 4) args(output, x, rows, cols)", answer
    text = (p.folder / "mine.cu").read_text()
    assert 'extern "C" __global__' in text and "warp_max" in text and "<<<" not in text and "cstdio" not in text, text
    init(p, "softmax", source, "no_launch", "--args", "out=output,inp=x,N=rows,C=cols").is_("refused", "no call no_launch<<<", "--launch")
    init(p, "softmax", source, "no_launch", "--args", "out=output,inp=x,N=rows,C=cols", "--launch", "grid(rows) block(32)").is_("pending", "compiled for sm_90a")
    init(p, "softmax", source, "launch_it", "--args", "out=output,inp=x,N=rows,C=cols").is_("refused", "is no __global__ function")


def test_cuda_among_classes(p):
    """The library is compiled beside the slice, so what is left of its classes compiles as well."""
    if not shutil.which("nvcc"):
        raise flow.Skip("no CUDA compiler: nothing can be compiled")
    if p.has("cuda"):
        raise flow.Skip("a GPU is here: what a host without one says cannot be seen")
    source, args = library(p, "CLASSES"), "inp=x,out=output,C=cols"
    answer = init(p, "softmax", source, "softmax_rows", "--args", args + ",nrows=rows", "--out", "mine.cu", "--json").is_("pending").json()
    assert answer["launch"] == "launch softmax_rows grid(rows, 1, 1) block(32, 1, 1) args(x, output, cols)", answer
    assert answer["edits"] == 1 and answer["differences"] == [], answer
    text = (p.folder / "mine.cu").read_text()
    assert 'extern "C" __global__' in text and "template <int width = WARP>" in text and "stream_pool" not in text, text
    init(p, "softmax", source, "softmax_rows", "--args", args).is_("refused", "its call needs nrows", "--args nrows=AXIS", "--launch")
    init(p, "softmax", source, "softmax_rows", "--args", args + ",nrows=rows,nope=rows").is_("refused", "no parameter nope")


def test_triton_goes_through_its_reader(p):
    if not extract_flow.has("triton"):
        raise flow.Skip("no triton package: python3 -m pip install triton, or name a Python that has it in KLINEAGE_PYTHON")
    p.write("rows.py", extract_flow.SOFTMAX)
    p.run("init", "softmax", "--from", "rows.py:rows", "--out", "mine.py", limit=200).is_("pending", "compiled for")


def test_triton_that_cannot_be_taken(p):
    p.write("rows.py", "def plain(x):\n    return x\n")
    p.run("init", "softmax", "--from", "rows.py:plain", "--out", "mine.py").is_("refused", "not taken:")
    assert not (p.folder / "mine.py").exists()


def main():
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
