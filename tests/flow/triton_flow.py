#!/usr/bin/env python3
"""triton_flow.py - kernels in Triton: what the compiler makes of them, and what is refused with its place.

usage: as flow.py.  Needs a Python that has the triton package (KLINEAGE_PYTHON, else python3), no GPU, and is skipped without it.
Kernels lie in tests/data/triton.  SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys

import flow


def needs_triton():
    python = os.environ.get("KLINEAGE_PYTHON") or "python3"
    if subprocess.run([python, "-c", "import importlib.metadata as m; m.version('triton')"], capture_output=True).returncode:
        raise flow.Skip("no triton package: python3 -m pip install triton, or name a Python that has it in KLINEAGE_PYTHON")


def compile_file(p, file, task, *options, **how):
    return p.run("kernel", "compile", file, "--task", task, "--arch", "sm_90a", *options, **how)


def made(p, name, task, *options):
    """What the compiler made of a kernel of tests/data/triton."""
    needs_triton()
    answer = compile_file(p, p.source / "tests/data/triton" / f"{name}.py", task, "--json", *options)
    answer.is_("ok")
    return answer.json()


def launch_of(made):
    return made["plan"]["launches"][0]


def test_block_and_shared_memory_are_the_compilers(p):
    launch = launch_of(made(p, "softmax", "softmax"))
    assert launch["entry"] == "softmax" and launch["block"] == [256, 1, 1], launch
    assert launch["smem"] > 0, launch
    assert launch["args"][:3] == ["x", "output", "4096"], launch    # the constexpr is folded
    assert set(launch["args"][3:]) <= {"i64(0)"}, launch             # scratch that it does not use


def test_an_integer_is_compiled_in_by_its_class(p):
    args = {n: launch_of(made(p, "softmax", "softmax", "--workload", f"rows=3,cols={n}"))["args"] for n in (1, 16, 17)}
    assert args[1][2] == "i64(0)", args     # 1 is a constant, as in Triton itself
    assert args[16][2] == "16" and args[17][2] == "17", args


def test_a_descriptor_is_passed_with_its_sizes_and_strides(p):
    args = launch_of(made(p, "gemm_descriptors", "gemm", "--workload", "M=512,N=256,K=128"))["args"]
    assert args[:5] == ["tensormap 3", "512", "128", "i64(128)", "i64(1)"], args


def test_hidden_scratch_is_a_buffer_of_the_gates(p):
    plan = made(p, "gemm_device_descriptors", "gemm", "--workload", "M=512,N=512,K=128")["plan"]
    assert plan["buffers"] == [{"name": "global_scratch_0", "bytes": 4 * 2 * 384}], plan
    assert "global_scratch_0" in plan["launches"][0]["args"], plan


def test_a_cluster_multiplies_the_grid(p):
    launch = launch_of(made(p, "gemm_cluster", "gemm", "--workload", "M=512,N=256,K=128"))
    assert launch["cluster"] == [2, 1, 1] and launch["grid"] == [4 * 2 * 2, 1, 1], launch


def test_shared_memory_that_the_architecture_lacks_is_refused_here(p):
    needs_triton()
    deep = p.write("deep.py", (p.source / "tests/data/triton/gemm_descriptors.py").read_text().replace("stages(4)", "stages(6)"))
    said = "0 to 232448 are possible"
    compile_file(p, deep, "gemm").is_("usage", said)
    p.run("gate", "gemm", deep, "--spool", p.folder / "spool", "--arch", "sm_90a", limit=300).is_("refused", said)


def test_two_launches_share_one_file(p):
    plan = made(p, "softmax_two_launches", "softmax")["plan"]
    assert [l["entry"] for l in plan["launches"]] == ["stats", "scale__1"], plan


def test_what_is_left_out_is_said(p):
    assert "kernel.py:9: note: left out: import of os" in made(p, "gemm_descriptors", "gemm")["log"]


def test_facts_are_those_of_what_was_compiled(p):
    needs_triton()
    for name, task, said in (("gemm_descriptors", "gemm", ("196640 bytes of shared memory", "stage.copy         engine", "stage.pipeline     4")),
                             ("gemm_cluster", "gemm", ("stage.cluster      true", "stage.pipeline     3")),
                             ("softmax", "softmax", ("stage.persistent   false", "stage.mma          none"))):
        p.run("kernel", "facts", p.source / "tests/data/triton" / f"{name}.py", "--task", task).is_("ok", *said)


def test_the_assemblers_report_is_kept(p):
    assert " info    : Used " in made(p, "gemm_descriptors", "gemm")["log"]


def test_variables_of_tritons_decide_nothing(p):
    plain = made(p, "softmax", "softmax")
    p.env.update(TRITON_PTXAS_PATH="/bin/false", TRITON_CACHE_DIR=str(p.folder / "cache"), TRITON_KERNEL_OVERRIDE="1",
                 TRITON_DEFAULT_FP_FUSION="0", TRITON_INTERPRET="1", KLINEAGE_CACHE=str(p.folder / "another"))
    assert made(p, "softmax", "softmax")["hash"] == plain["hash"]
    assert not (p.folder / "cache").exists()


# What is wrong, how it comes into the plain softmax, and the answer.
LOAD = "    e = tl.exp"
REFUSED = [
    ("    tl.core.inspect.os.system('id')", "kernel.py:12:5: error: 'core' of triton.language is not for kernels"),
    ("    v = v.__class__(v)", "kernel.py:12:9: error: '.__class__' is private"),
    ("    f = lambda a: a", "kernel.py:12:9: error: lambda has no place in a kernel"),
    ("    import os", "kernel.py:12:5: error: import has no place in a kernel"),
    ("    v = missing(v)", "kernel.py:12:9: error: 'missing' is no parameter, local, constant, kernel or name of Triton"),
    ("    v = tl.max(v, 5)", "kernel.py:12:9: error: invalid axis 5"),
    ("    v = tl.extern_elementwise('a', '/etc/passwd', [v], {}, is_pure=True)",
     "kernel.py:12:9: error: 'extern_elementwise' of triton.language is not for kernels"),
    ("    v = tl.inline_asm_elementwise('mov.b32 $0, $1; } .visible .entry evil() { ret;', '=r,r', [v], tl.float32, True, 1)",
     "kernel.py:12:9: error: assembly that leaves its function"),
    ("    v = tl.cdiv.run(v)", "kernel.py:12:9: error: '.run' is no attribute of a value of Triton's"),
]


def test_refused_with_line_and_column(p):
    needs_triton()
    good = (p.source / "tests/data/triton/softmax.py").read_text()
    for line, said in REFUSED:
        bad = p.write("bad.py", good.replace(LOAD, f"{line}\n{LOAD}"))
        compile_file(p, bad, "softmax").is_("no_compile", said)


def test_gluon_comes_the_same_way(p):
    needs_triton()
    good = (p.source / "tests/data/triton/gluon_softmax.py").read_text()
    answer = compile_file(p, p.write("gluon.py", good), "softmax")
    if "0 active drivers" in str(answer):
        raise flow.Skip("Gluon of Triton 3.4 asks a driver")
    answer.is_("ok", "grid 16384,1,1 block 128,1,1")
    evil = good.replace("mul.f32 $0, $1, $2;", "mov.b32 $0, $1; } .visible .entry evil() { ret;")
    named = "from triton.experimental.gluon.language import inline_asm_elementwise as assembly\n"
    for bad in (evil, evil.replace("gl.inline_asm", "gluon.language.inline_asm"),
                evil.replace("gl.inline_asm_elementwise", "assembly").replace("@gluon", f"{named}@gluon", 1)):
        compile_file(p, p.write("bad.py", bad), "softmax").is_("no_compile", "error: assembly that leaves its function")


def test_assembly_is_read_whatever_it_is_called_by(p):
    needs_triton()
    good = (p.source / "tests/data/triton/softmax.py").read_text()
    line = "    v = triton.language.inline_asm_elementwise('mov.b32 $0, $1; } .visible .entry evil() { ret;', '=r,r', [v], tl.float32, True, 1)"
    bad = good.replace(LOAD, f"{line}\n{LOAD}")
    compile_file(p, p.write("bad.py", bad), "softmax").is_("no_compile", "kernel.py:12:9: error: assembly that leaves its function")


def test_a_file_is_read_and_not_run(p):
    needs_triton()
    good, mark = (p.source / "tests/data/triton/softmax.py").read_text(), p.folder / "mark"
    run = f"import os\nos.system('touch {mark}')\nprint(open('/etc/passwd').read())\n"
    answer = compile_file(p, p.write("module.py", good.replace("import triton\n", f"import triton\n{run}", 1)), "softmax")
    answer.is_("ok", "note: left out: import of os", "note: left out: no kernel, constant or import of triton")
    assert not mark.exists() and "root:" not in str(answer)
    for signature in ("BLOCK: (open('x'))", "BLOCK: tl.constexpr = open('x')"):
        compile_file(p, p.write("bad.py", good.replace("BLOCK: tl.constexpr", signature)), "softmax").is_(
            "no_compile", "kernel.py:8:", "an annotation is a name" if "= open" not in signature else "not a constant expression")


def test_arguments_that_do_not_fit(p):
    needs_triton()
    good = (p.source / "tests/data/triton/softmax.py").read_text()
    for args, said in (("", "constexpr 'BLOCK' has no value: write BLOCK=... in args(...)"), (", 3, 4, BLOCK=BLOCK", "arguments, more than"),
                       (", BLOCK=x", "'BLOCK' is a tl.constexpr, which an address cannot be")):
        compile_file(p, p.write("bad.py", good.replace(", BLOCK=BLOCK", args)), "softmax").is_("no_compile", said)
    compile_file(p, p.write("bad.py", good.replace("launch softmax", "launch softmx")), "softmax").is_(
        "no_compile", "there is no @triton.jit function 'softmx'; there are: softmax")


def test_without_the_package(p):
    file = p.source / "tests/data/triton/softmax.py"
    compile_file(p, file, "softmax", env={"KLINEAGE_PYTHON": "/bin/false"}).is_(
        "no_device", "this kernel needs Triton's compiler", "KLINEAGE_PYTHON")


def main():
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
