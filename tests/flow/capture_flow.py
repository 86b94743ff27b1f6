#!/usr/bin/env python3
"""capture_flow.py - programs watched by `klineage capture`, and what they launched raced by the gate, on the fake driver.

usage: as flow.py.  Needs no GPU: tests/device/capture_program.c is the program, fake_cuda.c its driver under the name libcuda.so.1.
What needs a CUDA compiler is skipped without.  SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import flow

DEFINITION = {"name": "scaled", "op_type": "elementwise", "axes": {"N": {"type": "var"}},
              "inputs": {"x": {"shape": ["N"], "dtype": "float32"}, "s": {"shape": None, "dtype": "float32"}},
              "outputs": {"y": {"shape": ["N"], "dtype": "float32"}}, "reference": "def run(x, s):\n    return x * s\n"}
ORACLE = """//! launch oracle args(x, s, y, N)
void oracle(const float *x, float s, double *y, int n) { for (int i = 0; i < n; i++) y[i] = (double)s * x[i]; }
"""
MINE = """//! launch scale grid(cdiv(N, 256)) block(256) args(x, s, y, N)
extern "C" __global__ void scale(const float *x, float s, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] * s;
}
"""
RUNTIME = """#include <cstdio>
__global__ void scale(const float *x, float s, float *y, int n) { int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = x[i] * s; }
int main()
{
    float *x = nullptr, *y = nullptr;
    if (cudaMalloc(&x, 4000) || cudaMalloc(&y, 4000)) return std::printf("%s\\n", cudaGetErrorString(cudaGetLastError())), 4;
    scale<<<4, 256>>>(x, 2.5f, y, 1000);
    return cudaDeviceSynchronize() != 0;
}
"""


def built(p, name):
    path = pathlib.Path(p.program).parent.parent / "tests" / name
    if not path.exists():
        raise flow.Skip(f"{path} is not built")
    return str(path)


def driver(p):
    """The environment in which libcuda.so.1 is the fake."""
    folder = p.folder / "driver"
    folder.mkdir(exist_ok=True)
    if not (folder / "libcuda.so.1").exists():
        (folder / "libcuda.so.1").symlink_to(built(p, "libfake_cuda.so"))
    return {"LD_LIBRARY_PATH": str(folder)}


def code(p, *how):
    path = p.folder / ("code.fatbin" if how else "code.cubin")
    subprocess.run([built(p, "capture_cubin"), path, *how], check=True)
    return path


def capture(p, *how, out="kept", options=(), of=None):
    shutil.rmtree(p.folder / out, ignore_errors=True)
    return p.run("capture", "--out", out, *options, "--", built(p, "capture_program"), of or code(p), *how, env=driver(p))


def document(p):
    return json.loads((p.folder / "kept/capture.json").read_text())


def task(p, baselines=()):
    folder = p.folder / "tasks/scaled"
    (folder / "baseline").mkdir(parents=True)
    lines = [{"uuid": f"u{n}", "axes": {"N": n}, "inputs": {"x": {"type": "random"}, "s": {"type": "scalar", "value": 2.5}},
              "klineage": {"label": label}} for n, label in ((64, "tiny"), (1000, "thousand"))]
    (folder / "definition.json").write_text(json.dumps(DEFINITION | {"klineage": {"baselines": list(baselines)}}))
    (folder / "workloads.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "oracle.c").write_text(ORACLE)
    return folder


def test_every_way_to_a_driver_is_seen(p):
    for how in (["symbol"], ["address"], ["linked"], ["address", "library"], ["symbol", "graph"], ["address", "fork"]):
        capture(p, *how).is_("ok", "2.5 x", "1 launches, 1 distinct", "kept holds them")
        launch, = document(p)["launches"]
        assert (launch["name"], launch["count"], launch["grid"], launch["block"]) == ("scale", 1, [4, 1, 1], [256, 1, 1]), launch
        assert launch["graph"] == ("graph" in how) and launch["arch"] == 90 and launch["entry"] == "scale", launch
        assert [o["bytes"] for o in launch["parameters"]] == [8, 4, 8, 4], launch
        pointers = [o["pointers"] for o in launch["parameters"]]
        if "linked" not in how:
            assert [(q["offset"], q["bytes"]) for q in pointers[0] + pointers[2]] == [(0, 4000), (256, 4512)], pointers
        assert (p.folder / "kept" / launch["cubin"]).read_bytes()[:4] == b"\x7fELF"


def test_launches_are_told_apart_and_counted(p):
    answer = p.run("capture", "--json", "--", built(p, "capture_program"), code(p), "symbol", "struct", "twice", env=driver(p)).is_("ok").json()
    assert [(o["name"], o["count"]) for o in answer["launches"]] == [("scale_struct", 1), ("scale", 1)], answer
    assert answer["order"] == [0, 1] and answer["seen"] == 2 and answer["output"] == "2.5 x\n" and answer["out"] is None, answer
    assert [q["at"] for q in answer["launches"][0]["parameters"][0]["pointers"]] == [0, 8], answer


def test_names_of_c_plus_plus(p):
    capture(p, "symbol", "long").is_("ok", "void scale_struct<128>(struct)")


def test_a_struct_of_hundreds_of_words(p):
    """2880 bytes in one parameter: more pieces than a source could pass."""
    folder = task(p)
    capture(p, "symbol", "longest").is_("ok", "scale_longest")
    parameter, = document(p)["launches"][0]["parameters"]
    assert parameter["bytes"] == 2880, parameter["bytes"]
    made = p.run("capture", "kept", "--launch", "0", "--task", folder, "--workload", "thousand", "--args", "x=0,y=0@8,zero=rest", "--out", "cap.cu",
                 "--json").is_("ok").json()
    assert 224 < made["source"].count("&") < 1024, made["source"].count("&")


def test_code_of_the_device_is_taken_out_of_a_fatbin(p):
    capture(p, "symbol", of=code(p, "fatbin")).is_("ok", "1 distinct")
    whole = (p.folder / "code.fatbin").read_bytes()
    assert (p.folder / "kept" / document(p)["launches"][0]["cubin"]).read_bytes() == whole[-len(whole) // 2 + 72:]


def test_a_tensor_map_is_a_parameter(p):
    capture(p, "address", "map").is_("ok")
    made, = document(p)["launches"][0]["parameters"][0]["maps"]
    assert made["dims"] == [1000] and made["box"] == [64] and made["l2"] == 2 and made["offset"] == 0, made
    p.run("capture", "kept", "--launch", "0").is_("ok", "tensor map of memory", "pointer into memory", "1000, or")


def test_programs_that_end_badly_or_launch_nothing(p):
    capture(p, "symbol", "none").is_("no", "ended with status 0 and launched nothing", "hint:")
    assert not (p.folder / "kept").exists()
    capture(p, "symbol", "fail").is_("no", "ended with status 3", "what it launched until then", "scale")
    capture(p, "symbol", "die").is_("no", "was ended by SIGSEGV", "scale")
    assert document(p)["signal"] == signal.SIGSEGV
    p.run("capture", "--", "no-such-program").is_("usage", "there is no such program", "hint:")
    p.run("capture", "--", "/etc/passwd").is_("usage", "cannot be run")
    p.run("capture", "--out", "kept", "--", "true").is_("usage", "exists already")
    p.run("capture", "--task", "gemm", "--", "true").is_("usage", "first: klineage capture --out DIR")
    p.run("capture").is_("usage", "needs PROGRAM|DIR")
    assert sorted(path.name for path in p.folder.iterdir() if "capture" in path.name) == []


def test_interrupt_keeps_what_was_understood(p):
    words = [p.program, "capture", "--out", "kept", "--", built(p, "capture_program"), str(code(p)), "symbol", "wait"]
    running = subprocess.Popen(words, env={**p.env, **driver(p)}, cwd=p.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    while running.stdout.readline() != "waiting\n":
        assert running.poll() is None
    begin = time.monotonic()
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert running.returncode == flow.EXIT["interrupted"] and "was interrupted: 1 launches" in out, (running.returncode, out, err)
    assert document(p)["interrupted"] is True and time.monotonic() - begin < 20
    assert [path.name for path in p.folder.iterdir() if "capture" in path.name] == []


def test_what_a_launch_is_bound_to(p):
    folder = task(p)
    capture(p, "symbol")
    bind = ("capture", "kept", "--task", folder, "--workload", "thousand", "--out", "cap.cu", "--launch")
    made = p.run(*bind, "0", "--args", "x=0,s=1,y=2,N=3", "--json").is_("ok").json()
    assert "//! require N == 1000\n" in made["source"] and "args(x, s, y, N)" in made["source"], made
    assert (p.folder / "cap.cu").read_text() == made["source"] and (p.folder / "cap.cubin").exists()
    p.run(*bind, "0", "--args", "x=0,scratch=2").is_("ok")
    assert "//! buffer scratch_0: u8[4256]" in (p.folder / "cap.cu").read_text()
    assert "args(x, 1075838976, scratch_0, 1000)" in (p.folder / "cap.cu").read_text()
    x, y = (hex(document(p)["launches"][0]["parameters"][i]["pointers"][0]["address"]) for i in (0, 2))
    p.run(*bind, "0", "--args", f"x={x},y={y},s=1").is_("ok")
    assert "args(x, s, y, 1000)" in (p.folder / "cap.cu").read_text()
    p.run(*bind, "0", "--args", f"x={x},zero=rest").is_("ok")
    assert "//! buffer scratch_0: u8[4256] zero" in (p.folder / "cap.cu").read_text()
    p.run(*bind, "0", "--args", "x=0x10,zero=rest").is_("usage", "no argument of this launch holds the address 0x10", "have it print them")
    for args, said in (("x=0", "a pointer at 2 reaches 4256 bytes"), ("z=0", "has no tensor or axis 'z'"), ("x", "is no NAME=ARGUMENT"),
                       ("x=0,y=2,s=7", "there is no argument 7@0"), ("x=0,y=2,x=3", "is no pointer into memory"), ("s=0,y=2", "passed by value"),
                       ("x=0,y=2,N=1", "N is 1000 at this shape, but 1075838976 was passed")):
        p.run(*bind, "0", "--args", args).is_("usage", said, "hint:" if "passed by value" not in said and "pointer into" not in said else said)
    p.run(*bind, "4", "--args", "x=0").is_("usage", "there is no launch 4")
    p.run("capture", "kept", "--task", folder, "--args", "x=0").is_("usage", "which launch?")
    p.run(*bind[:4], "--workload", "N=2000", "--launch", "0", "--args", "x=0,y=2").is_("usage", "x has 8000 bytes at this shape", "--workload")
    p.run("capture", "tasks").is_("usage", "capture.json")
    (p.folder / "kept/capture.json").write_text('{"launches": [{"launch": 0}]}')
    p.run("capture", "kept").is_("usage", "launch 0 is not as a capture writes it")


def test_code_that_was_changed_is_refused(p):
    folder = task(p)
    capture(p, "symbol")
    path = p.folder / "kept" / document(p)["launches"][0]["cubin"]
    path.write_bytes(path.read_bytes() + b"x")
    p.run("capture", "kept", "--task", folder, "--launch", "0", "--args", "x=0,y=2").is_("usage", "not the code that was captured")


def race(p, *more, cache=None):
    if not (shutil.which("nvcc") or os.path.exists("/usr/local/cuda/bin/nvcc") or "CUDA_HOME" in os.environ):
        raise flow.Skip("no CUDA compiler for a kernel to race with: install the CUDA toolkit, or set CUDA_HOME")
    env = {"KLINEAGE_LIBCUDA": built(p, "libfake_cuda.so")} | ({"KLINEAGE_CACHE": str(cache)} if cache else {})
    return p.run("gate", p.folder / "tasks/scaled", p.write("mine.cu", MINE), "--workload", "thousand", "--quick", "--no-journal", "--json",
                 *more, env=env, limit=110)


@flow.alone
def test_captured_code_is_raced(p):
    """Struct, tensor map and a name of C++, each checked by the gate as an opponent; no time of the fake device means anything."""
    folder = task(p)
    for how, args in ((["struct"], "x=0,y=0@8,N=0@16,s=0@20"), (["map"], "x=0,s=1,y=2,N=3"), (["long"], "x=0,y=0@8"), (["longest"], "x=0,y=0@8")):
        capture(p, "symbol", *how)
        p.run("capture", "kept", "--launch", "0", "--task", folder, "--workload", "thousand", "--args", args, "--out", "cap.cu").is_("ok", "next:")
        verdict = race(p, "--against", "cap.cu").json()
        assert verdict["outcome"] in ("pass", "unstable") and [v["baseline"] for v in verdict["time"]["vs"]] == ["cap.cu"], verdict
    (p.folder / "cap.cu").write_text((p.folder / "cap.cu").read_text().replace("args(x, &y", "args(y, &x"))
    race(p, "--against", "cap.cu").is_("usage", "the --against kernel fails the gate")


@flow.alone
def test_captured_code_is_a_baseline_and_never_a_candidate(p):
    folder = task(p, [{"name": "captured", "on": "gpu", "file": "baseline/cap.cu"}])
    (folder / "baseline/cap.cu").write_text("//! launch scale grid(1) block(1) args()\n")    # until there is one
    capture(p, "symbol")
    p.run("capture", "kept", "--launch", "0", "--task", folder, "--workload", "thousand", "--args", "x=0,s=1,y=2,N=3", "--out",
          folder / "baseline/cap.cu").is_("ok")
    verdict = race(p).json()
    assert verdict["outcome"] in ("pass", "unstable") and [v["baseline"] for v in verdict["time"]["vs"]] == ["captured"], verdict
    p.run("gate", folder, folder / "baseline/cap.cu", "--no-journal", env={"KLINEAGE_LIBCUDA": built(p, "libfake_cuda.so")}).is_(
        "refused", "only a baseline can be compiled code")
    (folder / "baseline/cap.cubin").write_bytes(b"\x7fELF")
    verdict = race(p, cache=p.folder / "fresh").json()    # else what was captured is in the cache, by its hash
    assert any("captured is not available" in text and "not the code that was captured" in text for text in verdict["degradations"]), verdict


def test_a_program_of_the_runtime(p):
    """cudart as nvcc links it, on the fake driver: skipped where there is no nvcc, or the runtime wants more of a driver."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not os.path.exists(nvcc):
        raise flow.Skip("no nvcc: install the CUDA toolkit")
    subprocess.run([nvcc, "-arch=sm_90", "-o", p.folder / "program", p.write("program.cu", RUNTIME)], check=True, capture_output=True)
    alone = subprocess.run([p.folder / "program"], env={**p.env, **driver(p)}, capture_output=True, text=True)
    if alone.returncode == 4:
        raise flow.Skip(f"the fake driver is not enough for the runtime: {alone.stdout.strip()}")
    answer = p.run("capture", "--out", "kept", "--", p.folder / "program", env=driver(p)).is_("ok", "1 distinct")
    launch, = document(p)["launches"]
    assert launch["called"] == "scale(float const*, float, float*, int)" and launch["cubin"], (launch, answer)


def main():
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
