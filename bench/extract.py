#!/usr/bin/env python3
"""extract.py - what becomes of the Triton kernels of libraries: taken out, accepted by the front end, compiled.

usage: extract.py KLINEAGE [--only PACKAGE] > results/cpu/extract.json

$KLINEAGE_PYTHON has triton and the packages below (python3 -m pip install --no-deps flag_gems==5.0.2
liger-kernel==0.8.5 fla-core==0.6.0 flash-linear-attention==0.6.0); neither torch nor a GPU is needed, and nothing of them is
imported.  Every @triton.jit function of a package's modules is taken out as `klineage kernel extract` does it, and the
front end reads the file.  Those of COMPILED are taken out for a task by the program itself and compiled for sm_90a.
No time is measured.  SPDX-License-Identifier: Apache-2.0
"""
import argparse
import ast
import collections
import importlib.metadata
import importlib.util
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TRITON = pathlib.Path(__file__).resolve().parent.parent / "src/surface/triton"
PACKAGES = {"flag_gems": "flag_gems", "liger_kernel": "liger_kernel", "fla": "fla-core"}
OTHER_DEVICES = re.compile(r"/_(?!nvidia)\w+/(?!.*_nvidia)|ascend", re.I)
ARCH = "sm_90a"

# Task, kernel, and the sizes that it is made for where the first real shape is not among them.
COMPILED = [line.split() for line in """
gemm flag_gems.ops.mm:mm_kernel_general
gemm flag_gems.runtime.backend._nvidia.hopper.ops.mm:mm_kernel_general M=512,N=500,K=512
gemm flag_gems.runtime.backend._nvidia.hopper.ops.mm:mm_kernel_general_host_tma
gemm flag_gems.runtime.backend._nvidia.hopper.ops.mm:gemv_kernel N=1
gemm flag_gems.ops.mm:mm_kernel_syrk
gemm flag_gems.ops.addmm:addmm_kernel
gemm fla.ops.utils.matmul:matmul_kernel
gemm liger_kernel.ops.experimental.mm_int8int2:matmul_kernel
batched_gemm flag_gems.ops.bmm:bmm_kernel
grouped_gemm flag_gems.ops.group_gemm:grouped_gemm_kernel
conv2d flag_gems.ops.conv2d:conv2d_forward_kernel
softmax flag_gems.ops.softmax:softmax_kernel_inner
softmax flag_gems.ops.softmax:softmax_kernel_non_inner
softmax liger_kernel.ops.softmax:_softmax_single_block_forward_kernel
softmax liger_kernel.ops.softmax:_softmax_multi_block_forward_kernel
softmax fla.ops.utils.softmax:softmax_fwd_kernel
layernorm flag_gems.ops.layernorm:layer_norm_persistent_kernel
layernorm flag_gems.ops.layernorm:layer_norm_persistent_kernel_multiline hidden=128
layernorm flag_gems.ops.layernorm:layer_norm_loop_kernel hidden=8192
layernorm liger_kernel.ops.layer_norm:_layer_norm_forward_kernel
layernorm fla.modules.norm.layernorm:layer_norm_fwd_kernel hidden=512
layernorm fla.modules.norm.layernorm:layer_norm_fwd_kernel_row
layernorm fla.modules.norm.layernorm_gated:layer_norm_fwd_kernel_group
layernorm fla.modules.norm.layernorm_quant:layer_norm_quant_fwd_kernel
rmsnorm flag_gems.ops.rms_norm:rms_norm_kernel
rmsnorm flag_gems.ops.rms_norm:rms_norm_loop_kernel hidden=8192
rmsnorm flag_gems.experimental_ops.rmsnorm:rmsnorm_kernel
rmsnorm liger_kernel.ops.rms_norm:_rms_norm_forward_kernel
rmsnorm liger_kernel.ops.rms_norm:_block_rms_norm_forward_kernel rows=65536,hidden=256
rmsnorm fla.modules.norm.layernorm:layer_norm_fwd_kernel hidden=512
rmsnorm fla.modules.norm.layernorm:layer_norm_fwd_kernel_row
add_rmsnorm flag_gems.fused.fused_add_rms_norm:fused_add_rms_norm_kernel
add_rmsnorm liger_kernel.ops.fused_add_rms_norm:_fused_add_rms_norm_forward_kernel
add_rmsnorm fla.modules.norm.layernorm:layer_norm_fwd_kernel hidden=512
add_rmsnorm fla.modules.norm.layernorm:layer_norm_fwd_kernel_row
topk flag_gems.ops.topk:topk_stage1_kernel
fmha flag_gems.ops.attention:_attn_fwd
fmha fla.ops.attn.parallel:parallel_attn_fwd_kernel
gdn fla.ops.gated_delta_rule.fused_recurrent:fused_recurrent_gated_delta_rule_fwd_kernel
gdn fla.ops.common.chunk_delta_h:chunk_gated_delta_rule_fwd_kernel_h_blockdim64
""".split("\n") if line]


def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- every kernel: taken out, and read by the front end --------------------------------------------------------------------


def kernels_of(package):
    """MODULE:FUNCTION of every @triton.jit function at the top of a module."""
    root = pathlib.Path(importlib.util.find_spec("triton").origin).parent
    root = next(pathlib.Path(p) / package for p in sys.path if (pathlib.Path(p) / package).is_dir() and p != str(root))
    for path in sorted(root.rglob("*.py")):
        if OTHER_DEVICES.search(str(path)):
            continue
        module = ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and any(re.match(r"triton\.jit\b", ast.unparse(d)) for d in node.decorator_list):
                yield f"{module}:{node.name}"


def outcome_of(spec):
    """("accepted", "") or who said no, and why."""
    sys.path.insert(0, str(TRITON / "extract"))
    sys.setrecursionlimit(4000)
    extract, frontend = loaded("extract", TRITON / "extract/__main__.py"), loaded("frontend", TRITON / "frontend.py")
    sys.path.pop(0)
    import draft
    import evaluator
    import slicer
    import source
    place, _, name = spec.rpartition(":")
    modules = source.Modules()
    e = evaluator.Evaluator(modules, int(re.sub(r"\D", "", ARCH)))
    try:
        kernel = extract.kernel_of(modules.find(place), name, e)
        sliced = slicer.sliced(e, kernel.module, kernel.node)
        made = draft.Draft(e, kernel.module, kernel.node, None)
        frontend.Source("\n".join(extract.written(kernel.module, kernel.node, sliced, made, modules)))
    except source.Refused as error:
        return spec, "refused", re.sub(r"'[^']*'", "'...'", str(error))
    except frontend.Refused as error:
        return spec, "front end", re.sub(r"'[^']*'", "'...'", str(error))
    return spec, "accepted", "with params" if made.choice.params else ""


def survey(package):
    with multiprocessing.Pool(2) as pool:
        rows = pool.map(outcome_of, kernels_of(package), chunksize=8)
    counts = collections.Counter(said for _, said, _ in rows)
    why = collections.Counter(f"{said}: {text}" for _, said, text in rows if said != "accepted")
    return {"package": PACKAGES[package], "version": importlib.metadata.version(PACKAGES[package]), "kernels": len(rows),
            "accepted": counts["accepted"], "with_params": sum(text == "with params" for *_, text in rows),
            "refused_by_extract": counts["refused"], "refused_by_front_end": counts["front end"],
            "why": dict(why.most_common())}


# ---- for a task: taken out by the program, and compiled ------------------------------------------------------------------------


def run(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=500, check=False)
    return done.returncode, done.stdout + done.stderr


def compiled(program, task, kernel, sizes=""):
    row = {"kernel": kernel, "task": task, "sizes": sizes}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "mine.py")
        status, said = run(program, "kernel", "extract", kernel, "--task", task, "--out", file)
        left = [line.removeprefix("to fill in").strip() for line in said.splitlines() if line.startswith("to fill in")]
        if status:
            return {**row, "outcome": "refused", "why": re.sub(r"^.*?error: ", "", said.strip().splitlines()[0])}
        if left and "#! launch" not in pathlib.Path(file).read_text():
            return {**row, "outcome": "to fill in", "why": "; ".join(left)}
        status, said = run(program, "kernel", "compile", file, "--task", task, "--arch", ARCH, "--json",
                           *(("--workload", sizes) if sizes else ()))
    if status:
        errors = re.findall(r"error: (.*?)(?:\\n|\n|$)", said)
        return {**row, "outcome": "no_compile", "why": errors[0] if errors else said[:200]}
    made = json.loads(said)
    return {**row, "outcome": "compiled", "toolchain": made["toolchain"], "registers": int(made["features"]["registers"])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only", choices=PACKAGES)
    args = parser.parse_args()
    chosen = [args.only] if args.only else list(PACKAGES)
    rows = [compiled(args.program, *c) for c in COMPILED if c[1].split(".")[0] in chosen]
    json.dump({"arch": ARCH, "triton": importlib.metadata.version("triton"), "packages": [survey(p) for p in chosen],
               "compiled": rows}, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
