#!/usr/bin/env python3
"""tilelang_flow.py - kernels in TileLang: what the compiler makes of them, and what is refused with its place.

usage: as flow.py.  Needs a Python that has the tilelang package (KLINEAGE_PYTHON, else python3) and a CUDA compiler, no GPU, and is
skipped without them.  Kernels lie in tests/data/tilelang and tasks.  SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

import flow


def needs_tilelang():
    python = os.environ.get("KLINEAGE_PYTHON") or "python3"
    if subprocess.run([python, "-c", "import importlib.metadata as m; m.version('tilelang')"], capture_output=True).returncode:
        raise flow.Skip("no tilelang package: python3 -m pip install tilelang, or name a Python that has it in KLINEAGE_PYTHON")
    if not (os.environ.get("CUDA_HOME") or shutil.which("nvcc") or os.path.isdir("/usr/local/cuda")):
        raise flow.Skip("no CUDA compiler")


def compile_file(p, file, task, *options, **how):
    return p.run("kernel", "compile", file, "--task", task, "--arch", "sm_90a", *options, limit=200, **how)


def made(p, name, task, *options):
    """What the compiler made of a kernel of tests/data/tilelang, or of a task's own."""
    needs_tilelang()
    file = p.source / ("tasks" if "/" in name else "tests/data/tilelang") / f"{name}.py"
    answer = compile_file(p, file, task, "--json", *options)
    answer.is_("ok")
    return answer.json()


def launch_of(made):
    return made["plan"]["launches"][0]


def test_grid_block_and_shared_memory_are_the_compilers(p):
    launch = launch_of(made(p, "gemm", "gemm"))
    assert launch["entry"] == "gemm_kernel" and launch["grid"] == [32, 32, 1], launch
    assert launch["block"] == [384, 1, 1], launch    # 256, and a warp group that loads
    assert launch["smem"] == 3 * (128 + 128) * 64 * 2, launch


def test_descriptors_are_those_of_the_lowered_code(p):
    assert launch_of(made(p, "gemm", "gemm"))["args"] == ["tensormap 0", "tensormap 1", "y"]
    assert made(p, "gemm", "gemm")["features"]["tma"] > 0


def test_parameters_are_in_the_lowered_codes_order(p):
    assert launch_of(made(p, "gemm/naive.tilelang", "gemm"))["args"] == ["weight", "x", "y", "4096", "4096", "4096"]
    odd = launch_of(made(p, "gemm/naive.tilelang", "gemm", "--workload", "M=7,N=1031,K=515"))
    assert odd["args"] == ["weight", "x", "y", "515", "7", "1031"], odd    # K, M, N


def test_a_size_is_compiled_in_where_the_builder_is_given_it(p):
    def kernel(name, task, shape):
        return made(p, name, task, "--workload", shape)["hash"]
    for same, name, task, shapes in ((True, "softmax", "softmax", ("rows=3,cols=64", "rows=5,cols=64")),
                                     (False, "softmax", "softmax", ("rows=3,cols=64", "rows=3,cols=65"))):
        assert (kernel(name, task, shapes[0]) == kernel(name, task, shapes[1])) == same, shapes


def test_two_launches_share_one_file(p):
    plan = made(p, "softmax_two_launches", "softmax", "--workload", "rows=3,cols=700")["plan"]
    assert [l["entry"] for l in plan["launches"]] == ["stats_kernel", "scale__1_kernel"], plan
    assert plan["launches"][1]["grid"] == [3, 3, 1], plan
    assert [b["name"] for b in plan["buffers"]] == ["tops", "sums"], plan


def test_no_variable_outlives_a_launch(p):
    assert not made(p, "gemm", "gemm")["features"].get("variables")


def parameters_of(cubin):
    """Sizes of the parameters of each kernel of a cubin, from its own table."""
    at, = struct.unpack_from("<Q", cubin, 0x28)
    each, n, names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, at + i * each) for i in range(n)]
    found = {}
    for s in sections:
        start = sections[names][4] + s[0]
        name = cubin[start:cubin.index(b"\0", start)].decode()
        if name.startswith(".nv.info."):
            found[name[9:]] = parameters_in(cubin[s[4]:s[4] + s[5]])
    return found


def parameters_in(table):
    sizes, at = {}, 0
    while at + 4 <= len(table):
        form, attribute, value = struct.unpack_from("<BBH", table, at)
        at += 4
        if form == 4 and attribute in (0x17, 0x45):
            _, ordinal, _, bits = struct.unpack_from("<IHHI", table, at)
            sizes[ordinal] = bits >> 18
        at += value if form == 4 else 0
    return [sizes[i] for i in sorted(sizes)]


def bytes_of(argument):
    if argument.startswith("tensormap "):
        return 128
    return 4 if argument.lstrip("-").isdigit() or "=" in argument else 8


def test_long_arguments_are_those_of_the_cubins_own_table(p):
    p.env["KLINEAGE_CACHE"] = str(p.folder / "cache")
    for name, task in (("gemm", "gemm"), ("softmax_two_launches", "softmax"), ("gemm/naive.tilelang", "gemm"),
                       ("fmha/naive.tilelang", "fmha"), ("conv2d/naive.tilelang", "conv2d"), ("gdn/naive.tilelang", "gdn"),
                       ("topk/naive.tilelang", "topk")):
        plan, before = made(p, name, task)["plan"], set()
        for path in (p.folder / "cache/compile").glob("*.bin"):
            table = parameters_of(path.read_bytes())
            before |= set(table)
            for launch in plan["launches"]:
                if launch["entry"] in table:
                    assert [bytes_of(a) for a in launch["args"]] == table[launch["entry"]], (name, launch, table)
            path.unlink()
        for path in (p.folder / "cache/compile").glob("*.json"):
            path.unlink()
        assert {l["entry"] for l in plan["launches"]} == before, (name, before)


def test_long_naive_kernels_compile_for_every_shape(p):
    needs_tilelang()
    for file in sorted((p.source / "tasks").glob("*/naive.tilelang.py")):
        task = file.parent.name
        lines = [line for line in (file.parent / "workloads.jsonl").read_text().splitlines() if '"on": "gpu"' in line]
        for line in lines[::int(os.environ.get("KLINEAGE_TEST_SHARE", "1"))]:
            label = line.split('"label": "')[1].split('"')[0]
            compile_file(p, file, task, "--workload", label).is_("ok", "compiled")


def test_pass_configurations_are_flags(p):
    good = (p.source / "tests/data/tilelang/gemm.py").read_text()
    needs_tilelang()
    plain = p.write("plain.py", good.replace("#! launch", "#! flags -tl.disable_tma_lower -tl.disable_warp_specialized\n#! launch"))
    launch = launch_of(compile_file(p, plain, "gemm", "--json").is_("ok").json())
    assert launch["block"] == [256, 1, 1] and sorted(launch["args"]) == ["weight", "x", "y"], launch
    for flag in ("-tl.disable_data_race_check", "-tl.device_compile_flags=-I.", "-tl.disable_thread_storage_sync", "-tl.dump_ir_path=x"):
        bad = p.write("bad.py", good.replace("#! launch", f"#! flags {flag}\n#! launch"))
        compile_file(p, bad, "gemm").is_("usage", "flag")


def test_what_is_left_out_is_said(p):
    needs_tilelang()
    good = (p.source / "tests/data/tilelang/softmax.py").read_text()
    file = p.write("wrapped.py", good.replace("\n\ndef softmax", "\nimport torch\n\n\n@tilelang.jit(out_idx=[-1])\ndef softmax") +
                   "\n\ndef main():\n    print(torch.randn(4))\n\n\nif __name__ == '__main__':\n    main()\n")
    compile_file(p, file, "softmax").is_("ok", "kernel.py:8: note: left out: import of torch", "left out: decorator tilelang.jit(out_idx=[-1])",
                                         "left out: function main, which no launch reaches", "left out: no function, constant or import")


# What is wrong, how it comes into the plain softmax, and the answer.
INSIDE = "            T.reduce_max(power"
REFUSED = [
    ("            T.import_source('int state;')", "kernel.py:20:13: error: 'import_source' of tilelang.language is not for kernels"),
    ("            T.call_extern('float32', 'evil', power[0])", "kernel.py:20:13: error: 'call_extern' of tilelang.language is not for kernels"),
    ("            power.__class__", "kernel.py:20:13: error: '.__class__' is private"),
    ("            __tb", "kernel.py:20:13: error: '__tb' is private"),
    ("            import os", "kernel.py:20:13: error: import has no place in a kernel"),
    ("            os.system('id')", "kernel.py:20:13: error: '.system' is no attribute of a value of TileLang's"),
    ("            missing(power)", "kernel.py:20:13: error: 'missing' is no parameter, local, constant, function or name of TileLang"),
    ("            open('/etc/passwd')", "kernel.py:20:13: error: 'open' is no parameter"),
    ("            T.reduce_max(power, largest, 5)", "kernel.py:20:1: error: "),
    ("            T.sync_grid()", "kernel.py:20:13: error: 'sync_grid' of tilelang.language is not for kernels"),
    ("            T.alloc_global((4,), 'float32')", "kernel.py:20:13: error: 'alloc_global' of tilelang.language is not for kernels"),
    ("            match power:\n                case object(__class__=c): pass", "kernel.py:20:13: error: match has no place in a kernel"),
]


def test_refused_with_line_and_column(p):
    needs_tilelang()
    good = (p.source / "tests/data/tilelang/softmax.py").read_text()
    for line, said in REFUSED:
        bad = p.write("bad.py", good.replace(INSIDE, f"{line}\n{INSIDE}", 1))
        compile_file(p, bad, "softmax").is_("no_compile", said)


def test_what_runs_is_what_a_launch_reaches(p):
    needs_tilelang()
    good, mark = (p.source / "tests/data/tilelang/softmax.py").read_text(), p.folder / "mark"
    run = f"import os\nos.system('touch {mark}')\nprint(open('/etc/passwd').read())\n"
    answer = compile_file(p, p.write("module.py", good.replace("import tilelang\n", f"import tilelang\n{run}", 1)), "softmax")
    answer.is_("ok", "note: left out: import of os", "note: left out: no function, constant or import of tilelang")
    assert not mark.exists() and "root:" not in str(answer)
    for bad, said in (("@T.prim_func", "@T.prim_func(open('x'))"), ("@T.prim_func", "@open"), ("N, BLOCK, THREADS)", "N, BLOCK, THREADS=open('x'))")):
        compile_file(p, p.write("bad.py", good.replace(bad, said)), "softmax").is_("no_compile", "kernel.py:")


def test_long_arguments_that_do_not_fit(p):
    needs_tilelang()
    good = (p.source / "tests/data/tilelang/softmax.py").read_text()
    for before, after, said in (
            (", N=cols", "", "'N' has no value: write N=... in args(...)"),
            (", N=cols", ", N=cols, other=3", "'softmax' has no parameter 'other'"),
            ("args(x, output", "args(x", "1 arguments without a name, but the T.prim_func takes 2"),
            ("args(x, output", "args(x, cols", "'y' is a tensor of bfloat16; argument 2 is int32"),
            ("y: T.Tensor((rows, N), T.bfloat16)", "y: T.Tensor((rows, N), T.float32)", "'y' is a tensor of float32; argument 2 is a tensor of bfloat16"),
            ("launch softmax", "launch softmx", "there is no function 'softmx'; there are: softmax"),
            ("return main", "return N", "'softmax' returns no T.prim_func")):
        compile_file(p, p.write("bad.py", good.replace(before, after)), "softmax").is_("no_compile", said)
    other = p.write("other.py", good.replace('T.dynamic("rows")', 'T.dynamic("others")'))
    compile_file(p, other, "softmax").is_("usage", "its compiler decided: grid is no expression over axes, params and the grid")


TEXT = """#include <tl_templates/cuda/reduce.h>

extern "C" __global__ void f_kernel(const bfloat16_t* __restrict__ x, bfloat16_t* __restrict__ y, int rows) {
  y[0] = x[0];
}
"""
SAID = {"version": 1, "tensormaps": [], "launches": [{"of": 0, "entry": "f_kernel", "grid": ["rows", 1, 1], "block": [128, 1, 1],
                                                      "smem": 0, "args": [{"arg": 0}, {"arg": 1}, {"i32": "rows"}]}]}


def lying(p, text, said):
    """A front end that a candidate has taken over: it answers what it likes, and the answer to that."""
    find = "import importlib.util as u; print(list(u.find_spec('tilelang').submodule_search_locations)[0])"
    site = os.path.dirname(subprocess.run([os.environ.get("KLINEAGE_PYTHON") or "python3", "-c", find], capture_output=True,
                                          text=True, check=True).stdout.strip())
    p.folder.chmod(0o755)
    p.write("answer.json", json.dumps({"lowered.cu": text, "completion": json.dumps(said)}))
    python = p.folder / "python"
    python.write_text(f"#!/bin/sh\ncase $1 in -c) printf '0\\n{python}\\n{p.folder}\\n{site}\\n' ;; "
                      f"*) cat {p.folder}/answer.json ;; esac\n")
    python.chmod(0o755)
    file = p.write("f.py", "#! surface tilelang\n#! launch f args(x, output)\n")
    return compile_file(p, file, "softmax", env={"KLINEAGE_PYTHON": str(python), "KLINEAGE_CACHE": tempfile.mkdtemp(dir=p.folder)})


def test_a_process_that_lies_about_text(p):
    needs_tilelang()
    lying(p, TEXT, SAID).is_("ok", "f_kernel grid 16384,1,1 block 128,1,1")
    for line, n in (("__device__ int state;\n", 6), ("#include \"/etc/passwd\"\n", 6), ("#include <tl_templates/cuda/../../x.h>\n", 6),
                    ("  __device__ int state;\n", 6), ("  #include </etc/passwd>\n", 6), ("extern int state;\n", 6),
                    ("  asm volatile(\".entry evil() { ret; }\");\n", 6)):
        lying(p, TEXT + line, SAID).is_("no_compile", f"line {n} of what it was lowered to is not TileLang's")
    lying(p, "", SAID).is_("no_compile", "the compiled kernels are not those that are launched")
    more = TEXT + TEXT[TEXT.index("extern"):].replace("f_kernel", "g_kernel")
    lying(p, more, SAID).is_("no_compile", "the compiled kernels are not those that are launched")


def test_long_a_process_that_lies_about_launches(p):
    needs_tilelang()
    def launch(**lies):
        return {**SAID, "launches": [{**SAID["launches"][0], **lies}]}
    lying(p, TEXT, launch(entry="g_kernel")).is_("no_compile", "the compiled kernels are not those that are launched")
    for lies, why in (({"smem": 1 << 30}, "smem is 1073741824"), ({"grid": ["rows", 0, 1]}, "grid is 0"), ({"of": 3}, "there is no launch 3"),
                      ({"args": [{"arg": 7}]}, "arg is 7"), ({"args": [{"tensormap": 0}]}, "tensormap is 0"), ({"block": [2048, 1, 1]}, "block is 2048"),
                      ({"args": [{"tensor": "weight"}]}, "a tensor or buffer that there is not"), ({"grid": ["threads", 1, 1]}, "grid is no expression")):
        lying(p, TEXT, launch(**lies)).is_("usage", "its compiler decided", why)
    past = {"arg": 0, "dims": [4096, 16385], "strides": [8192], "box": [64, 8], "swizzle": 128}
    lying(p, TEXT, {**launch(args=[{"tensormap": 0}, {"arg": 1}, {"i32": 1}]), "tensormaps": [past]}).is_(
        "usage", "a descriptor reaches past the end of its tensor")
    scalar = {"arg": 5, "dims": [64], "strides": [], "box": [64]}
    lying(p, TEXT, {**launch(), "tensormaps": [scalar]}).is_("usage", "its compiler decided: arg is 5")


def test_without_the_package(p):
    file = p.source / "tests/data/tilelang/softmax.py"
    compile_file(p, file, "softmax", env={"KLINEAGE_PYTHON": "/bin/false"}).is_(
        "no_device", "this kernel needs TileLang's compiler", "KLINEAGE_PYTHON")


def test_a_spool_carries_what_was_compiled(p):
    needs_tilelang()
    file = p.source / "tasks/topk/naive.tilelang.py"
    p.run("gate", "topk", file, "--spool", p.folder / "spool", "--arch", "sm_90a", limit=250).is_("pending", "has no verdict yet")
    assert any("topk_kernel" in parameters_of(b.read_bytes()) for b in (p.folder / "spool/cache").glob("*.bin")
               if b.read_bytes()[:4] == b"\x7fELF" and b.read_bytes()[18] == 190)


def main():
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
