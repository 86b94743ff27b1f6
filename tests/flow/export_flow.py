#!/usr/bin/env python3
"""export_flow.py - what is exported builds with -Wall -Werror and is called from a plain program, or from PyTorch.

usage: as flow.py.  Launchers of device code run on the driver's stand-in (tests/device/fake_cuda.c), which knows its kernels by name: what is
tried is the launcher.  SPDX-License-Identifier: Apache-2.0
"""
import hashlib
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys

import documents
import flow

STRICT = "CFLAGS=-O2 -Wall -Wextra -Werror -Wno-unused-parameter"


def built(folder):
    """-Wextra is more than is promised, and kernels are their authors'."""
    done = subprocess.run(["make", "-s", "-C", folder, STRICT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def compiled(p, source, *objects, compiler="cc", options=()):
    program = str(p.folder / "program")
    line = [compiler, "-Wall", "-Werror", *options, "-o", program, source, *map(str, objects), "-lm"]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def said(program, env=None):
    done = subprocess.run([program], capture_output=True, text=True, env=env)
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def exported(p, kernel, name, *options, task=None, form="c"):
    """Of a kernel that passed just now."""
    if task:
        small = flow.SMALL if task == "gemm" else ("--workload", "tiny")
        p.gate(kernel, "--check-only", *small, task=task).is_("ok")
    document = p.run("export", kernel, "--as", form, "--out", name, *options, "--json").is_("ok").json()
    folder = p.folder / name
    provenance = json.loads((folder / "provenance.json").read_text())
    documents.validate(p.source, provenance)
    assert document["provenance"] == provenance
    for path, digest in provenance["files"].items():
        assert hashlib.sha256((folder / path).read_bytes()).hexdigest() == digest, path
    assert not [x for x in os.listdir(p.folder) if ".export-" in x or ".old-" in x]
    return folder


GEMM = """
#include "gemm.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int fallback(int64_t M, int64_t N, int64_t K, const float *x, const float *weight, float *y, void *workspace,
                    size_t bytes) { return 77; }

int main(void) {
    enum { M = 33, N = 21, K = 65 };
    float *x = aligned_alloc(64, 16384), *w = aligned_alloc(64, 16384), *y = aligned_alloc(64, 16384);
    const int64_t bytes = gemm_workspace_bytes(M, N, K);
    void *room = aligned_alloc(64, 64 + (size_t)bytes);
    double worst = 0;
    for (int i = 0; i < M * K; i++) x[i] = (float)(i % 17) - 8;
    for (int i = 0; i < N * K; i++) w[i] = (float)(i % 13) - 6;
    for (int i = 0; i < M * N; i++) y[i] = NAN;
    printf("call %d\\n", gemm(M, N, K, x, w, y, room, (size_t)bytes));
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++) sum += (double)x[i * K + k] * w[j * K + k];
            worst = fmax(worst, isnan(y[i * N + j]) ? 1e9 : fabs(sum - y[i * N + j]));
        }
    printf("error %d\\n", worst > 1e-2);
    printf("bytes %d\\n", (int)bytes);
    printf("shape %d\\n", gemm(0, N, K, x, w, y, room, (size_t)bytes));
    printf("outside %d %d\\n", gemm(M, 100000, K, x, w, y, room, (size_t)bytes),
           (int)gemm_workspace_bytes(M, 100000, K));
    printf("fallback %d\\n", gemm_or(fallback, M, 100000, K, x, w, y, room, (size_t)bytes));
    printf("none %d\\n", gemm_or(NULL, M, 100000, K, x, w, y, room, (size_t)bytes));
    printf("pointer %d %d\\n", gemm(M, N, K, x + 1, w, y, room, (size_t)bytes),
           gemm_or(fallback, M, N, K, NULL, w, y, room, (size_t)bytes));
    printf("workspace %d\\n", gemm(M, N, K, x, w, y, room, 0));
    printf("text %s\\n", gemm_error(GEMM_NOT_ADMITTED));
    return 0;
}
"""


def lines(text):
    return dict(line.split(" ", 1) for line in text.splitlines())


def test_c_is_called_from_a_plain_program(p):
    expert = p.source / "experts/gemm/c/8-expert.c"
    folder = built(exported(p, expert, "out", task="gemm"))
    got = lines(said(compiled(p, p.write("main.c", GEMM), folder / "libgemm.a", options=(f"-I{folder}",))))
    assert got == {"call": "0", "error": "0", "bytes": str(128 * 768 * 4), "shape": "1", "outside": "3 -3", "fallback": "77", "none": "3",
                   "pointer": "4 4", "workspace": "5", "text": "the gate did not check the kernel at such sizes"}, got
    if shutil.which("g++"):
        header = p.write("header.cc", '#include "gemm.h"\nint main() { return GEMM_OK; }\n')
        compiled(p, header, compiler="g++", options=(f"-I{folder}", "-std=c++20", "-Wextra", "-Wpedantic"))


# What directives can say: params, lets of both kinds, requires, cleared scratch, every kind of argument.
WORDS = """// SPDX-License-Identifier: MIT
//! param  BLOCK = 3
//! let    wide = cdiv(hidden, BLOCK) * BLOCK
//! let    odd = (rows == 0 || hidden % rows >= 0) && not hidden < 2 * 1 - 1
//! let    share: f64 = hidden ** -1 * (1 + eps - eps)
//! require pow2(hidden) >= hidden && odd == 1
//! buffer first: u8[7]
//! buffer sums: f32[max(rows, 2), wide / BLOCK] zero
//! launch squares args(x, sums, rows, i64(hidden), wide / BLOCK)
//! launch rms args(x, weight, f64(eps), sums, output, share, rows, hidden, wide / BLOCK, f32(0.5))
#include <math.h>
#include <stdint.h>
void squares(const float *x, float *sums, int32_t rows, int64_t hidden, int32_t blocks) {
    for (int64_t i = 0; i < rows * hidden; i++)
        sums[i / hidden * blocks + i % hidden / KL_BLOCK] += x[i] * x[i];
}
void rms(const float *x, const float *weight, double eps, const float *sums, float *output, double share, int32_t rows,
         int32_t hidden, int32_t blocks, float half) {
    for (int32_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int32_t b = 0; b < blocks; b++) sum += sums[(int64_t)r * blocks + b];
        const double scale = 2 * half / sqrt(sum * share + eps);
        for (int32_t i = 0; i < hidden; i++)
            output[(int64_t)r * hidden + i] = (float)(x[(int64_t)r * hidden + i] * scale * weight[i]);
    }
}
"""

RMS = """
#include "norm.h"
#include <math.h>
#include <stdio.h>

static _Alignas(64) float x[4 * 40], w[40], y[4 * 40];
static _Alignas(256) char room[4096];

int main(void) {
    for (int i = 0; i < 160; i++) x[i] = (float)(i % 11) - 5, w[i % 40] = 1;
    for (int i = 0; i < 4096; i++) room[i] = 0x55;
    const int code = norm(4, 40, x, w, 1e-6f, y, room, sizeof room);
    double sum = 0;
    for (int i = 0; i < 40; i++) sum += (double)x[i] * x[i];
    printf("call %d\\nerror %d\\nbytes %d\\n", code, fabs(y[3] - x[3] / sqrt(sum / 40 + 1e-6)) > 1e-5,
           (int)norm_workspace_bytes(4, 40));
    return 0;
}
"""


@flow.alone
def test_every_directive_of_c_is_in_the_launcher(p):
    kernel = p.write("words.c", WORDS)
    folder = exported(p, kernel, "out", "--name", "norm", task="rmsnorm")
    assert json.loads((folder / "provenance.json").read_text())["kernel"]["licence"] == "MIT"
    built(folder)
    source = p.write("main.c", RMS)
    got = lines(said(compiled(p, source, folder / "norm.c", folder / "norm_kernel.c", options=(f"-I{folder}", "-DNORM_ANY_SHAPE"))))
    assert got == {"call": "0", "error": "0", "bytes": str(256 + 256)}, got
    answer = p.run("export", kernel, "--name", "norm", "--out", "out", "--force", "--check", "--quick", limit=200)
    assert answer.status in (flow.EXIT["ok"], flow.EXIT["no"], flow.EXIT["unstable"]), answer
    assert "through the export" in answer.out, answer
    checked = json.loads((folder / "provenance.json").read_text())["check"]
    assert checked["outcome"] in ("pass", "unstable") and checked["call"] in ("same", "slower", "faster", "undecided"), checked


def test_all_or_nothing(p):
    p.run("export", p.naive).is_("usage", "no verdict with which this kernel passed", "klineage gate TASK")
    assert not (p.folder / "gemm-c").exists()
    exported(p, p.naive, "gemm-c", task="gemm")
    p.run("export", p.naive).is_("usage", "this exists and is not empty", "--force")
    (p.folder / "gemm-c/mine").write_text("mine")
    p.run("export", p.naive, "--force").is_("ok", "checked at")
    assert not (p.folder / "gemm-c/mine").exists()
    p.run("export", p.naive, "--name", "double", "--out", "x").is_("usage", "cannot have this name", "--name my_kernel")
    p.run("export", p.naive, "--name", "weight", "--out", "x").is_("usage", "axis or a tensor of this name", "--name")
    p.run("export", p.naive, "--task", "softmax", "--out", "x").is_("usage", "no verdict", "klineage gate softmax")
    p.run("export", p.naive, "--as", "flashinfer", "--out", "x").is_("usage", "was not timed", "klineage gate gemm")
    p.run("export", p.naive, "--as", "jar").is_("usage", "c|flashinfer|torch|kernelbench|triton|kernels|tvm-ffi|patch")
    p.write("there", "a file")
    p.run("export", p.naive, "--out", "there", "--force").is_("usage", "this is a file, not a folder", "--out")
    (p.folder / "empty").mkdir()
    (p.folder / "link").symlink_to("empty")
    for options in ((), ("--force",)):
        p.run("export", p.naive, "--out", "link/", *options).is_("usage", "this is a symbolic link, not a folder")
    assert (p.folder / "there").read_text() == "a file" and (p.folder / "link").is_symlink() and not (p.folder / "x").exists()
    p.run("export", p.naive, "--out", "empty").is_("ok")
    assert sorted(x.name for x in p.folder.iterdir() if x.name.startswith("gemm-c")) == ["gemm-c"]


# ---- device code ----------------------------------------------------------------------------------------------------------------------


def scaled_task(p):
    folder = p.folder / "tasks/scaled"
    folder.mkdir(parents=True)
    tensor = {"shape": ["N"], "dtype": "float32"}
    (folder / "definition.json").write_text(json.dumps({
        "name": "scaled", "op_type": "map", "description": "y = s * x", "axes": {"N": {"type": "var"}}, "tags": [], "constraints": [],
        "inputs": {"x": tensor, "s": {"shape": None, "dtype": "float32"}}, "outputs": {"y": tensor},
        "reference": "def run(x, s):\n    return s * x\n"}))
    inputs = {"x": {"type": "random"}, "s": {"type": "scalar", "value": 2.5}}
    (folder / "workloads.jsonl").write_text("".join(json.dumps({
        "uuid": f"{n}", "axes": {"N": n}, "inputs": inputs, "klineage": {"label": label, "on": "gpu", "hidden": hidden}}) + "\n"
        for n, label, hidden in ((4096, "real", False), (1000, "tiny", False), (260, "odd", True))))
    return folder


def keep(p, verdict):
    p.run("verdict", "list").is_("ok")  # now there is a journal
    row = (hashlib.sha256(json.dumps(verdict).encode()).hexdigest(), verdict["task"]["name"], verdict["kernel"]["hash"], "pass", json.dumps(verdict), verdict["created"])
    with sqlite3.connect(p.folder / "state/klineage/klineage.db") as journal:
        journal.execute("INSERT INTO verdict (key, task, kernel, platform, outcome, json, created) VALUES (?, ?, ?, 'there', ?, ?, ?)", row)


def passed_elsewhere(p, task, kernel, surface="cuda", workload="real"):
    """The verdict of a host with a GPU, made of one of this host: none is here."""
    p.gate(p.naive, "--check-only").is_("ok")
    key = p.run("verdict", "list", "--json").json()["verdicts"][0]["key"]
    verdict = p.run("verdict", "show", key, "--json").json()
    shown = p.run("task", "show", task, "--json").json()
    verdict["task"] = {"name": shown["name"], "hash": shown["hash"]}
    shown = p.run("kernel", "show", kernel, "--json").json()
    verdict.update(kernel={"path": str(kernel), "hash": shown["hash"], "surface": surface}, workload=workload, assurance="A")
    keep(p, verdict)


SCALED = """// SPDX-License-Identifier: Apache-2.0
//! param  BLOCK = 256
//! let    blocks = min(cdiv(N, BLOCK), 4 * sms)
//! require N % 4 == 0
//! buffer tmp: f32[N] zero
//! buffer more: f32[N, 4]
//! tensormap mx: x box(64)
//! tensormap mm: more box(4, 16) dims(4, N) strides(4)
//! launch wants_zeros_in_buffer grid(blocks) block(BLOCK) args(x, s, y, tmp, N)
//! launch through_map grid(blocks, 1) block(BLOCK) smem(64) cluster(2) args(mx, s, y, N)
#include <cuda.h>
extern "C" __global__ void wants_zeros_in_buffer(const float *x, float s, float *y, float *tmp, int n) { y[0] = tmp[0] + x[0] * s + n; }
extern "C" __global__ void through_map(const __grid_constant__ CUtensorMap x, float s, float *y, int n) { y[0] = s + n; }
"""

# The stand-in has one context, and no function that asks for its device.
SCALED_PROGRAM = """
#include "scaled.h"
#include <stdio.h>
#include <stdlib.h>
CUresult cuCtxGetDevice(CUdevice *device) { return *device = 0, CUDA_SUCCESS; }
static int fallback(const scaled_module *m, CUstream stream, int64_t N, CUdeviceptr x, float s, CUdeviceptr y, CUdeviceptr w,
                    size_t bytes) { return 77; }
int main(void) {
    enum { N = 1000 };
    scaled_module *m = NULL;
    float *x = aligned_alloc(256, 4096), *y = aligned_alloc(256, 4096);
    printf("load %d\\n", scaled_load(&m));
    const int64_t bytes = scaled_workspace_bytes(m, N);
    char *room = aligned_alloc(256, (size_t)bytes);
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = -1;
    for (int64_t i = 0; i < bytes; i++) room[i] = 0x55;
#define AT(p) ((CUdeviceptr)(uintptr_t)(p))
    printf("bytes %d\\n", (int)bytes);
    printf("call %d\\n", scaled(m, NULL, N, AT(x), 2.5f, AT(y), AT(room), (size_t)bytes));
    printf("right %d\\n", y[0] == 0 && y[1] == 2.5f && y[999] == 2497.5f);
    printf("refused %d\\n", scaled(m, NULL, 999, AT(x), 2.5f, AT(y), AT(room), (size_t)bytes));
    printf("outside %d\\n", scaled(m, NULL, 8192, AT(x), 2.5f, AT(y), AT(room), (size_t)bytes));
    printf("fallback %d\\n", scaled_or(fallback, m, NULL, 8192, AT(x), 2.5f, AT(y), AT(room), (size_t)bytes));
    printf("pointer %d\\n", scaled(m, NULL, N, AT(x) + 4, 2.5f, AT(y), AT(room), (size_t)bytes));
    printf("workspace %d\\n", scaled(m, NULL, N, AT(x), 2.5f, AT(y), AT(room), 8));
    printf("text %s\\n", scaled_error(SCALED_DRIVER + 700));
    scaled_unload(m);
    return 0;
}
"""


def cuda_home():
    home = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    if not (home / "include/cuda.h").exists() or not (home / "lib64/stubs/libcuda.so").exists():
        raise flow.Skip("no CUDA toolkit: launchers of device code are not built")
    return home


def beside_stand_in(p, folder, home):
    stand_in = pathlib.Path(p.program).parent.parent / "tests/libfake_cuda.so"
    if not stand_in.exists():
        raise flow.Skip("it builds and links; the driver's stand-in was not built, so it was not called")
    return (f"-I{folder}", f"-I{home}/include", "-Wl,--export-dynamic", f"-Wl,-rpath,{stand_in.parent}"), stand_in


def cuda_export(p, form):
    home = cuda_home()
    task, kernel = scaled_task(p), p.write("scaled.cu", SCALED)
    answer = p.run("kernel", "compile", kernel, "--task", task, "--arch", "sm_90a")
    if answer.status == flow.EXIT["no_device"]:
        raise flow.Skip("neither NVRTC nor nvcc: device code is not compiled")
    passed_elsewhere(p, task, kernel)
    return home, exported(p, kernel, "out", "--task", task, "--arch", "sm_90a", form=form)


def test_cuda_is_launched_through_the_driver(p):
    home, folder = cuda_export(p, "c")
    built(folder)
    options, stand_in = beside_stand_in(p, folder, home)
    got = lines(said(compiled(p, p.write("main.c", SCALED_PROGRAM), folder / "libscaled.a", stand_in, options=options)))
    assert got.pop("text"), got
    assert got == {"load": "0", "bytes": str(4096 + 16128), "call": "0", "right": "1", "refused": "2", "outside": "3", "fallback": "77",
                   "pointer": "4", "workspace": "5"}, got


def test_cuda_in_python_parses(p):
    _, folder = cuda_export(p, "torch")
    for path in folder.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
    assert "torch.cuda.current_stream" in (folder / "scaled/native.py").read_text()


# ---- code for a class of shapes ------------------------------------------------------------------------------------------------------

SCALED_TRITON = """# SPDX-License-Identifier: Apache-2.0
#! surface triton
#! param BLOCK = 256
#! let blocks = cdiv(N, BLOCK)
#! require N % 4 == 0
#! launch scale grid(blocks) warps(4) stages(2) args(x, s, y, N)
import triton
import triton.language as tl


@triton.jit
def scale(x, s, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * s, mask=i < n)
"""

SCALED_CLASSES = """
#include "scaled.h"
#include <stdio.h>
#include <stdlib.h>
CUresult cuCtxGetDevice(CUdevice *device) { return *device = 0, CUDA_SUCCESS; }
int main(void) {
    scaled_module *m = NULL;
    float *x = aligned_alloc(256, 16384), *y = aligned_alloc(256, 16384);
    printf("load %d\\n", scaled_load(&m));
    for (int i = 0; i < 4096; i++) x[i] = (float)i, y[i] = -1;
#define AT(p) ((CUdeviceptr)(uintptr_t)(p))
    printf("bytes %d\\n", (int)scaled_workspace_bytes(m, 4096));
    const int64_t sizes[] = {4096, 1000, 1008, 260, 999, 4, 8192};
    for (int i = 0; i < 7; i++) {
        const int code = scaled(m, NULL, sizes[i], AT(x), 2.5f, AT(y), 0, 0);
        printf("at%d %d %g\\n", (int)sizes[i], code, code ? 0.0 : y[sizes[i] - 1]);
    }
    scaled_unload(m);
    return 0;
}
"""


def triton_export(p, form, text=SCALED_TRITON):
    python = os.environ.get("KLINEAGE_PYTHON") or "python3"
    if subprocess.run([python, "-c", "import importlib.metadata as m; m.version('triton')"], capture_output=True).returncode:
        raise flow.Skip("no triton package: python3 -m pip install triton, or name a Python that has it in KLINEAGE_PYTHON")
    task, kernel = scaled_task(p), p.write("scaled.py", text)
    passed_elsewhere(p, task, kernel, "triton")
    return exported(p, kernel, "out", "--task", task, "--arch", "sm_90a", form=form)


def test_triton_is_a_code_for_each_class_of_shapes(p):
    home = cuda_home()
    folder = built(triton_export(p, "c"))
    text = (folder / "scaled_code.c").read_text()
    assert "scaled_code_1[]" in text and "scaled_code_2[]" not in text, "4096 is divided by 16, 1000 and 260 are not"
    options, stand_in = beside_stand_in(p, folder, home)
    got = lines(said(compiled(p, p.write("main.c", SCALED_CLASSES), folder / "libscaled.a", stand_in, options=options)))
    assert got == {"load": "0", "bytes": "0", "at4096": "0 10237.5", "at1000": "0 2497.5", "at1008": "0 2517.5", "at260": "0 647.5",
                   "at999": "2 0", "at4": "3 0", "at8192": "3 0"}, got


def test_a_class_that_no_admitted_shape_has_is_not_admitted(p):
    text = SCALED_TRITON.replace("args(x, s, y, N)", "args(x, s, y, N, WIDTH=pow2(N))").replace("n, BLOCK", "n, WIDTH: tl.constexpr, BLOCK")
    home = cuda_home()
    folder = built(triton_export(p, "c", text))
    options, stand_in = beside_stand_in(p, folder, home)
    got = lines(said(compiled(p, p.write("main.c", SCALED_CLASSES), folder / "libscaled.a", stand_in, options=options)))
    assert got["at4096"] == "0 10237.5" and got["at1000"] == "0 2497.5" and got["at1008"] == "3 0", got  # 1024 and divided: no shape has that


def test_triton_in_python_is_what_the_gate_read(p):
    folder = triton_export(p, "triton")
    for path in folder.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
    launch = (folder / "scaled/launch.py").read_text()
    assert "CLASSES = { (16, ), (0, ) }" in launch and '_launch("scale", (let_blocks, ), [x, s, y, _i32(N), ], {}, num_warps=4, num_stages=2)' in launch
    assert (folder / "scaled/kernel.py").read_text() == SCALED_TRITON
    more = p.write("more.py", SCALED_TRITON + "\nimport os\nos.system('true')\n")
    passed_elsewhere(p, p.folder / "tasks/scaled", more, "triton")
    p.run("export", more, "--task", p.folder / "tasks/scaled", "--as", "triton", "--arch", "sm_90a", "--out", "x").is_(
        "usage", "the gate left a part of it out", "left out: import of os", "gate the kernel again")
    wide = p.write("wide.py", SCALED_TRITON.replace("y, N)", "y, i64(N))"))
    passed_elsewhere(p, p.folder / "tasks/scaled", wide, "triton")
    p.run("export", wide, "--task", p.folder / "tasks/scaled", "--as", "triton", "--arch", "sm_90a", "--out", "x").is_(
        "usage", "argument N has 64 bits", "--as torch")
    assert not (p.folder / "x").exists()
    p.gate(p.naive, "--check-only").is_("ok")
    p.run("export", p.naive, "--as", "triton", "--out", "x").is_("usage", "surface c is not Triton's", "--as torch")


# ---- Python ---------------------------------------------------------------------------------------------------------------------------


def python_with_torch():
    python = os.environ.get("KLINEAGE_PYTHON") or sys.executable
    done = subprocess.run([python, "-c", "import torch; print(hasattr(torch.library, 'custom_op'))"], capture_output=True, text=True)
    if done.stdout.strip() != "True":
        raise flow.Skip("no PyTorch with torch.library.custom_op: python3 -m pip install torch, or name a Python in KLINEAGE_PYTHON")
    return python


def run_python(p, python, *words):
    env = {**p.env, "XDG_CACHE_HOME": str(p.folder / "cache")}
    done = subprocess.run([python, *map(str, words)], capture_output=True, text=True, env=env, cwd=p.folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_torch_operator_passes_opcheck(p):
    python = python_with_torch()
    for kernel, task in (("experts/gemm/c/8-expert.c", "gemm"), ("experts/topk/c/7-expert.c", "topk")):
        folder = exported(p, p.source / kernel, f"op-{task}", task=task, form="torch")
        assert run_python(p, python, folder / f"test_{task}.py").endswith("ok\n")
    run_python(p, python, "-c", """
import sys, torch
sys.path.insert(0, "op-gemm")
import gemm
x, w = torch.randn(33, 65), torch.randn(21, 65)
torch.testing.assert_close(gemm.gemm(x, w), x @ w.T)
torch.testing.assert_close(torch.ops.klineage.gemm(x.T.contiguous().T, w), x @ w.T)
for bad in ((x, torch.randn(9999, 65)), (x.double(), w), (x, torch.randn(21, 64))):
    try:
        gemm.gemm(*bad)
    except ValueError:
        continue
    raise AssertionError("a shape or a type that nobody admitted")
try:
    gemm.gemm(x.requires_grad_(), w).sum().backward()
except (RuntimeError, NotImplementedError):
    pass
else:
    raise AssertionError("a gradient that nobody wrote")
""")


def test_torch_operator_is_judged_through_itself(p):
    python = python_with_torch()
    kernel = p.source / "experts/gemm/c/8-expert.c"
    folder = exported(p, kernel, "op", task="gemm", form="torch")
    words = ("export", kernel, "--task", "gemm", "--as", "torch", "--out", "op", "--force", "--check", "--quick")
    answer = p.run(*words, limit=300, env={"KLINEAGE_PYTHON": python})
    assert answer.status in (flow.EXIT["ok"], flow.EXIT["no"], flow.EXIT["unstable"]), answer
    checked = json.loads((folder / "provenance.json").read_text())["check"]
    assert checked["outcome"] == "unstable" or (checked["outcome"] == "pass" and checked["overhead"]["ns"] > 0), checked


def test_kernelbench_model_calls_the_launcher(p):
    python = python_with_torch()
    exported(p, p.source / "experts/gemm/c/8-expert.c", "kb", task="gemm", form="kernelbench")
    run_python(p, python, "-c", """
import sys, torch
sys.path.insert(0, "kb")
from model_new import ModelNew
x, w = torch.randn(33, 65), torch.randn(21, 65)
torch.testing.assert_close(ModelNew()(x, w), x @ w.T)
""")


def python_with(module, p):
    """Of a Python that has PyTorch and `module`."""
    python = python_with_torch()
    if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode:
        raise flow.Skip(f"no {module}: python3 -m pip install {'apache-tvm-ffi' if module == 'tvm_ffi' else module}")
    return python


def test_a_fallback_serves_what_is_refused(p):
    python = python_with_torch()
    exported(p, p.source / "experts/gemm/c/8-expert.c", "op", task="gemm", form="torch")
    run_python(p, python, "-c", """
import sys, torch
sys.path.insert(0, "op")
import gemm
x, w = torch.randn(3, 9999), torch.randn(2, 9999)
torch.testing.assert_close(gemm.gemm_or(None, x, w), x @ w.T, rtol=1e-3, atol=1e-3)  # the task's own reference
assert gemm.gemm_or(lambda x, w: "mine", x, w) == "mine"
y = gemm.gemm_or(lambda x, w: "mine", torch.ones(33, 65), torch.ones(21, 65))
assert y.shape == (33, 21) and (y == 65).all()
""")


def test_kernels_loads_it(p):
    """With the package of Hugging Face itself."""
    python = python_with("kernels", p)
    folder = exported(p, p.source / "experts/gemm/c/8-expert.c", "hub", task="gemm", form="kernels")
    metadata = json.loads((folder / "build/torch-cpu/metadata.json").read_text())
    assert metadata["name"] == "gemm" and metadata["license"] == "Apache-2.0" and metadata["backend"] == {"type": "cpu"}, metadata
    assert run_python(p, python, folder / "test_gemm.py").endswith("ok\n")
    run_python(p, python, "-c", """
import pathlib, torch
from kernels import get_local_kernel
kernel = get_local_kernel(pathlib.Path("hub").resolve(), backend="cpu")
x, w = torch.randn(33, 65), torch.randn(21, 65)
torch.testing.assert_close(kernel.gemm(x, w), x @ w.T)
""")


TVM_FFI = """
import numpy, sys, tvm_ffi
module = tvm_ffi.load_module(sys.argv[1])
def tensor(*shape, dtype="float32", off=0):
    values = numpy.random.default_rng(0).standard_normal(shape).astype(dtype)
    room = numpy.empty(values.nbytes + 128, "uint8")
    at = -room.ctypes.data % 64 + off
    made = room[at:at + values.nbytes].view(dtype).reshape(shape)
    made[...] = values
    return made
x, w, y = tensor(33, 65), tensor(21, 65), tensor(33, 21)
view = tvm_ffi.from_dlpack
module.gemm(view(x), view(w), view(y))
numpy.testing.assert_allclose(y, x @ w.T, rtol=1e-4, atol=1e-4)
for bad, what in (((x, w), "takes 3 arguments"), ((x, w, tensor(33, 20)), "dimension 1 of y is 20, not 21"),
                  ((tensor(33, 65, dtype="float64"), w, y), "another data type"), ((x, w, tensor(33)), "1 dimensions, not 2"),
                  ((tensor(33, 65, off=4), w, y), "not aligned"),
                  ((tensor(3, 9999), tensor(2, 9999), tensor(3, 2)), "did not check the kernel at such sizes")):
    try:
        module.gemm(*map(view, bad))
    except (TypeError, ValueError, RuntimeError) as e:
        assert what in str(e), (what, str(e))
    else:
        raise AssertionError(what)
try:
    module.gemm(1, view(w), view(y))
except TypeError as e:
    assert "x is no tensor" in str(e), e
print("ok")
"""


def test_tvm_ffi_loads_it(p):
    """With the package apache-tvm-ffi itself; its headers and its library are what the Makefile asks for."""
    python = os.environ.get("KLINEAGE_PYTHON") or sys.executable
    if subprocess.run([python, "-c", "import numpy, tvm_ffi"], capture_output=True).returncode:
        raise flow.Skip("no tvm_ffi: python3 -m pip install apache-tvm-ffi numpy, or name a Python that has them in KLINEAGE_PYTHON")
    folder = exported(p, p.source / "experts/gemm/c/8-expert.c", "ffi", task="gemm", form="tvm-ffi")
    done = subprocess.run(["make", "-s", "-C", folder, f"PYTHON={python}", STRICT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert run_python(p, python, "-c", TVM_FFI, folder / "gemm.so") == "ok\n"
    symbols = subprocess.run(["nm", "-D", "--defined-only", folder / "gemm.so"], capture_output=True, text=True).stdout
    assert "__tvm_ffi_gemm" in symbols


# ---- a change of another tree ----------------------------------------------------------------------------------------------------------

LIBRARY = """/* void matmul(int) {} is not it */
#include <stddef.h>
#include "mm.h"

static int zero(void) { return 0; }

void matmul(size_t rows, size_t cols, size_t depth, const float *A, const float *B, float *C) {
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            C[i * cols + j] = (float)zero() + 1000;
            for (size_t k = 0; k < depth; k++) C[i * cols + j] += A[i * depth + k] * B[j * depth + k];
        }
}

int count(const float *A) { return A != NULL; }
"""

USER = """
#include "src/mm.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    float *a = aligned_alloc(64, 16384), *b = aligned_alloc(64, 16384), *c = aligned_alloc(64, 16384);
    for (int i = 0; i < 4096; i++) a[i] = b[i] = 1;
    matmul(33, 21, 65, a, b, c);
    printf("admitted %g\\n", c[33 * 21 - 1]);
    matmul(1, 1, 4096, a, b, c);
    printf("other %g\\n", c[0]);
    return 0;
}
"""


def git(tree, *words):
    line = ["git", "-C", tree, "-c", "user.name=A", "-c", "user.email=a@b", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def library(p):
    if not shutil.which("git"):
        raise flow.Skip("no git")
    tree = p.folder / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / "src/mm.c").write_text(LIBRARY)
    (tree / "src/mm.h").write_text("#include <stddef.h>\nvoid matmul(size_t rows, size_t cols, size_t depth, const float *A, const float *B, float *C);\n")
    (tree / "mm.py").write_text('"""mm"""\nimport torch\n\n\ndef matmul(a, b, *, alpha=1):\n    """Of two."""\n    return None\n')
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "first")
    return tree


def timed(p, kernel):
    """A verdict with a time, whatever this machine is busy with; what is tried is what is made of it."""
    answer = p.gate(kernel, "--quick", "--against", p.naive, "--no-journal", "--json", limit=200)
    keep(p, {**answer.json(), "outcome": "pass", "why": ""})


@flow.alone
def test_a_patch_is_applied_and_serves(p):
    kernel, tree = p.source / "experts/gemm/c/8-expert.c", library(p)
    timed(p, kernel)
    names = "(x=A, weight=B, y=C, M=rows, N=cols, K=depth)"
    p.run("export", kernel, "--as", "patch", "--out", "x").is_("usage", "--into TREE --replace FILE:FUNCTION")
    p.run("export", kernel, "--as", "patch", "--into", tree, "--replace", "src/mm.c:matmul", "--out", "x").is_(
        "usage", "matmul has no parameter for M; it has: rows, cols, depth, A, B, C", "src/mm.c:matmul(M=...)")
    for where, why in (("src/mm.c:zero", "returns something"), ("src/mm.c:nowhere", "no function nowhere"), ("src/no.c:f", "no such file"),
                       ("src/mm.c:count(M=A)", "returns something"), ("src/mm.c", "wants FILE:FUNCTION"), ("../x.c:f", "inside the tree")):
        p.run("export", kernel, "--as", "patch", "--into", tree, "--replace", where, "--out", "x").is_("usage", why)
    (tree / "notes").write_text("mine")
    p.run("export", kernel, "--as", "patch", "--into", tree, "--replace", "src/mm.c:matmul" + names, "--out", "x").is_(
        "usage", "the tree is not clean: 1 change, the first is '?? notes'", "commit or stash")
    (tree / "notes").unlink()
    p.run("export", kernel, "--as", "patch", "--into", p.folder, "--replace", "src/mm.c:matmul", "--out", "x").is_("usage", "no working tree of git")
    assert not (p.folder / "x").exists()
    before = git(tree, "count-objects", "-v")
    folder = exported(p, kernel, "out", "--into", tree, "--replace", "src/mm.c:matmul" + names, form="patch")
    assert not git(tree, "status", "--porcelain") and git(tree, "count-objects", "-v") == before, "the tree was touched"
    git(tree, "am", folder / "0001-gemm.patch")
    message = git(tree, "log", "-1", "--format=%B")
    for line in ("  before ", "  after ", "Verdict: ", "Receipt: ", "Licence: Apache-2.0", "To build: make -C klineage/gemm"):
        assert line in message, message
    documents.validate(p.source, json.loads((tree / "klineage/gemm/provenance.json").read_text()))
    built(tree / "klineage/gemm")
    sources = [tree / "src/mm.c", tree / "klineage/gemm/gemm_site.c", tree / "klineage/gemm/libgemm.a"]
    program = compiled(p, p.write("user.c", USER), *sources, options=(f"-I{tree}", "-pthread", "-Wextra", "-Wno-unused-parameter"))
    got = lines(said(program))
    assert got == {"admitted": "65", "other": "5096"}, got  # the library's own body adds 1000: it serves the other shape
    p.run("export", kernel, "--as", "patch", "--into", tree, "--replace", "src/mm.c:matmul" + names, "--out", "x").is_("usage", "has this already")


@flow.alone
def test_a_patch_of_python_is_applied_and_serves(p):
    kernel, tree = p.source / "experts/gemm/c/8-expert.c", library(p)
    timed(p, kernel)
    folder = exported(p, kernel, "out", "--into", tree, "--replace", "mm.py:matmul(x=a, weight=b)", form="patch")
    git(tree, "am", folder / "0001-gemm.patch")
    text = (tree / "mm.py").read_text()
    assert '    """Of two."""\n    _made = gemm_site(a, b)\n    if _made is not None:\n        return _made\n    return None\n' in text, text
    python = python_with_torch()
    run_python(p, python, "-c", """
import sys, torch
sys.path.insert(0, "tree")
import mm
x, w = torch.randn(33, 65), torch.randn(21, 65)
torch.testing.assert_close(mm.matmul(x, w), x @ w.T)
assert mm.matmul(torch.randn(3, 9999), torch.randn(2, 9999)) is None, "a shape that nobody admitted"
assert mm.matmul(x.clone().requires_grad_(), w) is None, "a gradient is wanted"
""")


@flow.alone
def test_flashinfer_documents(p):
    """Fields and values as flashinfer_bench/data has them; main.py is run where there is PyTorch."""
    answer = p.gate(p.naive, "--quick", "--against", p.naive, "--no-journal", "--json", limit=200)
    keep(p, {**answer.json(), "outcome": "pass", "why": ""})  # on a busy machine no time converges; what is tried is the document
    folder = exported(p, p.naive, "fi", form="flashinfer")
    solution, trace = (json.loads((folder / f"{name}.json").read_text()) for name in ("solution", "trace"))
    assert set(solution) == {"name", "definition", "author", "spec", "sources", "description"}
    spec = solution["spec"]
    assert set(spec) == {"language", "target_hardware", "entry_point", "dependencies", "destination_passing_style", "binding"}
    assert spec["language"] in ("python", "triton", "cpp", "cuda", "tilelang") and spec["target_hardware"] and spec["binding"] is None
    paths = [source["path"] for source in solution["sources"]]
    assert spec["entry_point"].split("::")[0] in paths and len(set(paths)) == len(paths)
    assert all(source["content"] and not source["path"].startswith("/") and ".." not in source["path"] for source in solution["sources"])
    assert set(trace) == {"definition", "workload", "solution", "evaluation"} and trace["solution"] == solution["name"]
    assert set(trace["workload"]) == {"axes", "inputs", "uuid"}
    evaluation = trace["evaluation"]
    assert evaluation["status"] == "PASSED" and evaluation["timestamp"] and evaluation["environment"]["hardware"]
    assert all(evaluation["correctness"][key] >= 0 for key in ("max_relative_error", "max_absolute_error"))
    assert all(evaluation["performance"][key] > 0 for key in ("latency_ms", "reference_latency_ms", "speedup_factor"))
    python = python_with_torch()
    for source in solution["sources"]:
        path = p.folder / "built/solution" / source["path"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source["content"])
    run_python(p, python, "-c", """
import importlib, sys, torch
sys.path.insert(0, "built")
x, w, y = torch.randn(33, 65), torch.randn(21, 65), torch.empty(33, 21)
importlib.import_module("solution.main").run(x, w, y)
torch.testing.assert_close(y, x @ w.T)
""")


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
