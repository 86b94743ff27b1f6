#!/usr/bin/env python3
"""import_flow.py - problems of other people's dialects become tasks, and the gate judges kernels by them.

usage: as flow.py.  What runs references needs PyTorch, in $KLINEAGE_PYTHON or python3, and says so where it is skipped.
SPDX-License-Identifier: Apache-2.0
"""
import functools
import json
import os
import pathlib
import subprocess
import sys

import flow
import import_problems as problems


@functools.cache
def has_torch():
    return subprocess.run([os.environ.get("KLINEAGE_PYTHON") or "python3", "-c", "import torch"], capture_output=True).returncode == 0


def needs_torch():
    if not has_torch():
        raise flow.Skip("no torch package: python3 -m pip install torch, or name a Python that has it in KLINEAGE_PYTHON")


def without_torch(p):
    """An environment in which torch is not to be found."""
    folder = p.folder / "hidden"
    folder.mkdir(exist_ok=True)
    (folder / "torch.py").write_text("raise ImportError('hidden by a test', name='torch')\n")
    return {"PYTHONPATH": str(folder), "KLINEAGE_PYTHON": "python3"}


def imported(p, source, out, *options, env=None):
    return p.run("task", "import", source, "--out", out, *options, env=env, limit=280)


def files(p, name, contents):
    folder = p.folder / name
    folder.mkdir(parents=True)
    for file, text in contents.items():
        (folder / file).write_text(text)
    return folder


def whole(p, source, count, checked, drafted):
    """All of a collection loads; at least so many have a naive kernel, and the gate admits `checked`."""
    answer = imported(p, source, "out", "--json").is_("ok").json()
    lost = [(o["name"], o["error"]) for o in answer["problems"] if o["error"]]
    assert answer["imported"] == count and not lost, lost
    naive = [o["name"] for o in answer["problems"] if o["naive"]]
    assert len(naive) >= drafted, [(o["name"], o["notes"]) for o in answer["problems"] if not o["naive"]]
    for name in checked:
        p.run("task", "check", f"out/{name}", limit=120).is_("ok", "admitted: its check rejects wrong kernels", "naive.c")
    return {o["name"]: o for o in answer["problems"]}


# ---- each dialect ------------------------------------------------------------------------------------------------------

def kernelbench_files(p):
    return files(p, "level1", {f"{n}.py": text for n, text in problems.KERNELBENCH.items()})


def test_kernelbench(p):
    needs_torch()
    rows = whole(p, kernelbench_files(p), len(problems.KERNELBENCH), ["scaled_gelu", "edge_filter", "looked_up", "named_parts"], 11)
    assert all(o["generated"] and o["hidden"] >= 2 for o in rows.values()), rows
    shown = p.run("task", "show", "out/scaled_gelu").is_("ok", "linear_weight", "[units, features]").out
    assert "batch=512 features=768 units=384" in shown and shown.count("hidden") >= 2, shown


def test_kernelbot(p):
    needs_torch()
    for name, contents in problems.KERNELBOT.items():
        files(p, f"problems/{name}", contents)
    rows = whole(p, "problems", len(problems.KERNELBOT), ["axpy", "counts", "into_a_buffer"], 7)
    assert "case" in p.run("task", "show", "out/counts").is_("ok").out
    assert rows["counts"]["oracle"] == "own precision" and rows["axpy"]["oracle"] == "float64", rows


def test_flashinfer(p):
    needs_torch()
    problems.flashinfer(p.folder / "set")
    rows = whole(p, "set", len(problems.FLASHINFER), ["gemm_n96_k64", "page_gather_p8", "topk_k4"], 7)
    said = "\n".join(rows["gemm_n96_k64"]["skipped"])
    assert "gemm_n96_k64.jsonl:3: axis M is 0" in said and ":4: it is no JSON object" in said and ":5: the size of M is missing" in said, said
    offsets = json.loads((p.folder / "out/segment_sum_d16/definition.json").read_text())["klineage"]["inputs"]["indptr"]
    assert offsets == {"dist": "offsets", "total": "total"}, offsets
    pages = json.loads((p.folder / "out/page_gather_p8/definition.json").read_text())["klineage"]["inputs"]["page_indices"]
    assert pages == {"dist": "uniform_int", "low": 0, "high": "num_pages"}, pages


def test_sol(p):
    needs_torch()
    problems.sol(p.folder / "sol")
    rows = whole(p, "sol", len(problems.SOL), ["outer_n48", "cross_entropy", "conv_k3"], 8)
    assert rows["cross_entropy"]["generated"] and not rows["outer_n48"]["generated"], rows


def test_functions(p):
    needs_torch()
    p.write("mine.py", problems.FUNCTIONS)
    for i, (name, inputs) in enumerate(problems.FUNCTION_INPUTS.items()):
        options = ("--inputs", inputs) if inputs else ()
        imported(p, f"mine.py:{name}", f"out/{name}", *options).is_("ok", "naive.c", "next: klineage task check")
        if i < 3 or name == "named":
            p.run("task", "check", f"out/{name}", limit=120).is_("ok", "admitted: its check rejects")


def test_a_copy_is_drafted_for_every_size_and_said_to_have_no_hidden_shape(p):
    """At every size a trivial answer is right, so the sizes that a draft is traced at are no hidden shapes."""
    needs_torch()
    p.write("mine.py", problems.FUNCTIONS)
    imported(p, "mine.py:copied", "out", "--inputs", "x: float32[M=64,N=96]").is_("ok", "2 shapes and 0 hidden", "note     no hidden shape", "naive.c")
    assert "i0 < A_M" in (p.folder / "out/naive.c").read_text()
    p.gate("out/naive.c", "--check-only", task="out").is_("ok")


def test_functions_of_a_package_that_are_no_python(p):
    """They do not say what they take; --inputs does."""
    needs_torch()
    answer = imported(p, "torch:matmul", "out", "--inputs", "input: float32[M=64,K=48], other: float32[K,N=32]", "--json").is_("ok").json()
    assert answer["problems"][0]["naive"] and answer["problems"][0]["oracle"] == "float64", answer
    p.run("gate", "out", "out/naive.c", "--check-only", limit=100).is_("ok")
    imported(p, "torch.nn.functional:relu", "relu", "--inputs", "input: float32[M=64,N=48]").is_("ok")    # its `inplace` is no place for a result
    p.run("gate", "relu", "relu/naive.c", "--check-only", limit=100).is_("ok")
    imported(p, "torch:matmul", "none").is_("refused", "what does it take?")


def test_python_makes_a_task_of_a_function(p):
    needs_torch()
    files(p, "mine", {"ops.py": "import torch, klineage\n\n\ndef scaled(x, factor):\n    return torch.relu(x) * factor\n"})
    done = from_python(p, "import os, torch, klineage, ops\n"
                       "del os.environ['PYTHONPATH']    # the trusted runner need not have klineage\n"
                       "task = klineage.Task.from_torch(ops.scaled, torch.rand(96, 40), 0.5, out='scaled')\n"
                       "print(task, task.gate('scaled/naive.c', check_only=True).outcome)")
    assert done.stdout == "Task('scaled') pass\n", done


def test_python_fails_where_a_function_is_no_task(p):
    needs_torch()
    files(p, "mine", {"ops.py": problems.FUNCTIONS})
    done = from_python(p, "import torch, klineage, ops\n"
                       "for call in (lambda: klineage.Task.from_torch(ops.noisy, torch.rand(64), out='out'), lambda: klineage.task_import('mine/ops.py:numbered', out='out',\n"
                       "             inputs='x: float32[N=64]')):\n"
                       "    try: print(call())\n"
                       "    except klineage.Failed as failed: print(failed.status, failed.message)")
    said = done.stdout.splitlines()
    assert len(said) == 2 and all(line.startswith("10 not imported: ") for line in said), done
    assert "no function of its inputs" in said[0] and "the key 0" in said[1] and not (p.folder / "out").exists(), done


def from_python(p, text):
    """What a program says that has klineage and the files of `mine`."""
    env = {**p.env, "PYTHONPATH": f"{p.source / 'python'}:{p.folder / 'mine'}", "KLINEAGE_PROGRAM": p.program}
    python = os.environ.get("KLINEAGE_PYTHON") or "python3"
    return subprocess.run([python, "-B", "-c", text], env=env, cwd=p.folder, capture_output=True, text=True, timeout=280)


def test_long_every_imported_task_is_checked(p):
    """What was imported can be asked whether it is sound: wrong answers fail, and where there is a draft it passes."""
    needs_torch()
    kernelbench_files(p)
    for name, contents in problems.KERNELBOT.items():
        files(p, f"level1/{name}", contents)
    problems.flashinfer(p.folder / "level1/set")
    problems.sol(p.folder / "level1/sol")
    for o in imported(p, "level1", "out", "--json").is_("ok").json()["problems"]:
        answer = p.run("task", "check", f"out/{o['name']}", limit=200)
        assert "BAD" not in answer.out and answer.status == (0 if o["naive"] else 1), (o, str(answer))


# ---- what the gate does with it ----------------------------------------------------------------------------------------

def test_inputs_are_made_under_the_gates_seed(p):
    needs_torch()
    files(p, "axpy", problems.KERNELBOT["axpy"])
    imported(p, "axpy", "task").is_("ok", "made by its own Python, under the gate's seed", "in float64")
    tiny = ("--workload", "tiny", "--check-only", "--json")
    right = p.write("right.c", "//! launch f args(x, y, a, output, size)\n"
                    "void f(const float *x, const float *y, float a, float *o, int n) { for (int i = 0; i < n; i++) o[i] = a * x[i] + y[i]; }\n")
    wrong = p.write("wrong.c", "//! launch f args(x, y, output, size)\n"
                    "void f(const float *x, const float *y, float *o, int n) { for (int i = 0; i < n; i++) o[i] = x[i] + y[i]; }\n")
    verdict = p.gate(right, *tiny, "--seed", "7", task="task").is_("ok").json()
    assert not any("oracle" in d or "naive" in d for d in verdict["degradations"]), verdict["degradations"]
    errors = [c["max_abs_error"] for c in verdict["checks"]]
    again = p.gate(right, *tiny, "--seed", "7", "--store", "other.db", task="task").is_("ok").json()
    other = p.gate(right, *tiny, "--seed", "8", "--store", "third.db", task="task").is_("ok").json()
    assert errors == [c["max_abs_error"] for c in again["checks"]], (errors, again["checks"])
    assert errors != [c["max_abs_error"] for c in other["checks"]], "another seed makes other inputs"
    p.gate(wrong, "--check-only", task="task").is_("wrong")


def test_a_generator_that_ignores_its_seed_is_found(p):
    needs_torch()
    text = problems.KERNELBOT["row_sums"]
    changed = {**text, "reference.py": text["reference.py"].replace("gen.manual_seed(seed)", "gen.seed()")}
    files(p, "task", changed)
    imported(p, "task", "out").is_("ok")
    p.run("task", "check", "out").is_("usage", "other inputs for the same seed")


# ---- mistakes ----------------------------------------------------------------------------------------------------------

def test_bad_problems_get_one_clear_line(p):
    needs_torch()
    for name, (text, why) in problems.KERNELBENCH_BAD.items():
        imported(p, p.write(f"{name}.py", text), f"out/{name}").is_("refused", "not imported:", why)
    for name, (contents, why) in problems.KERNELBOT_BAD.items():
        imported(p, files(p, name, contents), f"out/{name}").is_("refused", "not imported:", why)
    p.write("mine.py", problems.FUNCTIONS)
    imported(p, "mine.py:noisy", "out/noisy", "--inputs", "x: float32[N=64]").is_("refused", "no function of its inputs")
    for name, why in {"same_name": "the key `x`, which is the name of an input", "numbered": "the key 0", "counted": "something else than tensors"}.items():
        imported(p, f"mine.py:{name}", f"out/{name}", "--inputs", "x: float32[M=64,N=96]").is_("refused", why)
    imported(p, "mine.py:scaled_add", "out/s", "--inputs", "x: float33[N=64]").is_("refused", "there is no data type float33")
    imported(p, "mine.py:scaled_add", "out/s", "--inputs", "z: float32[N=64]").is_("refused", "no parameter `z`; it has x, y, s")
    imported(p, "mine.py:nothing", "out/s").is_("refused", "has no function `nothing`")
    imported(p, "nomodule:f", "out/s").is_("refused", "not imported: nomodule:f: No module named 'nomodule'")
    refused = imported(p, "mine.py:noisy", "out/s", "--inputs", "x: float32[N=64]", "--json").is_("refused").json()["problems"][0]
    assert refused["folder"] is None and "no function of its inputs" in refused["error"], refused
    assert not (p.folder / "out").exists() and not list(p.folder.glob("*.import-*")), "nothing is half-written"


def test_what_reads_files_is_not_imported(p):
    """Made, run, or loaded: a verdict is kept for the text of a task, and the file may change."""
    needs_torch()
    p.write("table.txt", "2.0")
    p.write("reading.py", problems.READING)
    p.write("weighted.py", problems.READING_MODEL)
    torch_file = p.folder / "weights.pt"
    subprocess.run([os.environ.get("KLINEAGE_PYTHON") or "python3", "-c", f"import torch; torch.save(torch.ones(96), {str(torch_file)!r})"], check=True)
    for name, file in {"from_table": "table.txt", "from_system": "/etc/hostname", "from_weights": "weights.pt", "from_path": "table.txt"}.items():
        imported(p, f"reading.py:{name}", "out", "--inputs", "x: float32[M=64,N=96]").is_("refused", f"it opens the file {file}")
    imported(p, "weighted.py", "out").is_("refused", "it opens the file table.txt")
    assert not (p.folder / "out").exists()
    p.write("beside.py", "import torch\n\n\ndef scaled(x):\n    import json, decimal\n    return torch.nn.functional.gelu(x) * 2\n")
    imported(p, "beside:scaled", "out", "--inputs", "x: float32[M=64,N=96]", env={"PYTHONPATH": str(p.folder)}).is_("ok", "naive.c")


def test_without_torch_it_says_so(p):
    env = without_torch(p)
    for name in ("scaled_gelu.py", "mine.py"):
        p.write(name, problems.KERNELBENCH["scaled_gelu"] if name != "mine.py" else problems.FUNCTIONS)
    files(p, "axpy", problems.KERNELBOT["axpy"])
    imported(p, "scaled_gelu.py", "out", env=env).is_("no_device", "a PyTorch module needs torch: python3 -m pip install torch")
    imported(p, "mine.py:scaled_add", "out", env=env).is_("no_device", "a Python function needs torch")
    imported(p, "axpy", "out", env=env).is_("no_device", "needs torch")
    assert not (p.folder / "out").exists()


def test_definitions_load_without_torch(p):
    problems.flashinfer(p.folder / "set")
    problems.sol(p.folder / "set/sol")
    answer = imported(p, "set", "out", "--json", env=without_torch(p)).is_("ok").json()
    assert answer["imported"] == len(problems.FLASHINFER) + len(problems.SOL), [(o["name"], o["error"]) for o in answer["problems"] if o["error"]]
    assert all(any("torch is not here" in n for n in o["notes"]) for o in answer["problems"]), answer
    p.run("task", "show", "out/gqa_decode_h8_d32").is_("ok", "sm_scale", "tiny", "hidden")


def test_where_from_and_where_to(p):
    p.run("task", "import", "nowhere").is_("usage", "--out")
    imported(p, "nowhere", "out").is_("usage", "no such file or folder")
    (p.folder / "empty").mkdir()
    imported(p, "empty", "out").is_("usage", "no problem in it")
    imported(p, p.write("plain.txt", "text"), "out").is_("usage", "not a problem that can be read")
    imported(p, p.write("half.json", '{"name": "x", "axes": {}, "inputs": {}, "outputs": {}}'), "out").is_("refused", "no reference")
    full = p.folder / "full"
    full.mkdir()
    (full / "file").write_text("mine")
    imported(p, "half.json", "full").is_("usage", "exists and is not empty")
    assert [f.name for f in full.iterdir()] == ["file"]


def main():
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
