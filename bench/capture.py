#!/usr/bin/env python3
"""A matrix product of PyTorch, captured on a GPU host and raced by the gate against the library that it came from.

    bench/capture.py [--bin build/bin/klineage] [--size 4096] [--out FOLDER]

Needs a GPU, its driver, and a Python with PyTorch in $KLINEAGE_PYTHON.  The program multiplies bf16 matrices by torch.matmul at a
size of the task gemm.  Its launches are captured; one that ran as often as the product is bound to x, weight and y by the addresses
that the program prints, and by trial where only a tensor map holds them; then the gate takes the naive kernel beside it, which checks
the captured code at this shape.  Says of each step whether it worked, and prints one JSON object: a binding that cannot be guessed
is no failure of the capture, and the object has what `--args` needs.  SPDX-License-Identifier: Apache-2.0"""
import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMES = 20
PROGRAM = f"""
import sys, torch
n = int(sys.argv[1])
x, weight = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
y = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)
for _ in range({TIMES}):
    torch.matmul(x, weight.T, out=y)
torch.cuda.synchronize()
print("torch", torch.__version__, torch.cuda.get_device_name(), *(hex(t.data_ptr()) for t in (x, weight, y)))
"""


def step(name, done):
    print(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {name}", file=sys.stderr, flush=True)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:], sep="\n", file=sys.stderr)
    return done.returncode == 0


def run(options, *words):
    return subprocess.run([options.bin, *map(str, words)], capture_output=True, text=True, cwd=ROOT)


def places(launch):
    """Each address of a launch: (place, memory and where in it, bytes from there on, the address where it stands as such)."""
    for i, parameter in enumerate(launch["parameters"]):
        value = bytes.fromhex(parameter["value"])
        for kind in ("pointers", "maps"):
            for found in parameter[kind]:
                at = f"{i}@{found['at']}" if found["at"] else str(i)
                address = int.from_bytes(value[found["at"]:found["at"] + 8], "little") if kind == "pointers" else None
                yield at, (found["allocation"], found["offset"]), found["bytes"] - found["offset"], address


def bindings(launch, size, addresses):
    """Ways to say which memory is x, weight and y: by its address, and every order of what only a tensor map holds.  The same memory
    is one tensor; all else is cleared before each run."""
    memory, known = {}, {}
    for at, where, room, address in places(launch):
        memory.setdefault(where, (at, room))
        if address in addresses:
            known[addresses[address]] = memory[where][0]
    free = [at for at, room in memory.values() if room >= 2 * size * size and at not in known.values()]
    names = [name for name in ("x", "weight", "y") if name not in known]
    for chosen in itertools.permutations(free, len(names)):
        bound = known | dict(zip(names, chosen))
        rest = [at for at, _ in memory.values() if at not in bound.values()]
        yield ",".join([f"{name}={at}" for name, at in bound.items()] + [f"zero={at}" for at in rest])


def raced(options, kept, launch, size, args):
    """The verdict with the launch bound so, or why there is none."""
    shape, file = f"M={size},N={size},K={size}", options.out / "captured.cu"
    bound = run(options, "capture", kept, "--launch", launch, "--task", "gemm", "--workload", shape, "--args", args, "--out", file)
    if bound.returncode:
        return {"args": args, "error": bound.stderr.strip()}
    done = run(options, "gate", "gemm", "tasks/gemm/naive.cu", "--workload", shape, "--against", file, "--quick", "--no-journal", "--json", "-q")
    try:
        verdict = json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"args": args, "error": done.stderr.strip()}
    return {"args": args, "outcome": verdict["outcome"], "why": verdict["why"], "time": verdict["time"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    options.out = (options.out or Path(tempfile.mkdtemp(prefix="klineage-capture-"))).resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    program, kept = options.out / "mm.py", options.out / "kept"
    program.write_text(PROGRAM)
    python = os.environ.get("KLINEAGE_PYTHON", "python3")
    if not step("the program runs alone", subprocess.run([python, program, str(options.size)], capture_output=True, text=True)):
        return 1
    done = run(options, "capture", "--out", kept, "--json", "--", python, program, options.size)
    if not step("the program runs captured", done):
        return 1
    document = json.loads(done.stdout)
    for launch in document["launches"]:
        print(f"       launch {launch['launch']}: {launch['count']} x {launch['called'][:90]}, {len(launch['parameters'])} arguments, "
              f"code {'kept' if launch['cubin'] else launch.get('why')}", file=sys.stderr)
    printed = [int(word, 16) for word in document["output"].split() if word.startswith("0x")]
    addresses = dict(zip(printed, ("x", "weight", "y")))
    often = [o for o in document["launches"] if o["count"] == TIMES and o["cubin"]]
    result = {"folder": str(options.out), "said": document["output"].strip(), "launches": len(document["launches"]), "product": [], "raced": []}
    for launch in often:
        result["product"].append({"launch": launch["launch"], "called": launch["called"], "places": list(places(launch))})
        for args in itertools.islice(bindings(launch, options.size, addresses), 24):
            found = raced(options, kept, launch["launch"], options.size, args)
            result["raced"].append({"launch": launch["launch"], **found})
            if found.get("time"):
                print(f"ok     launch {launch['launch']} computes the product with --args {args}", file=sys.stderr)
                print(json.dumps(result, indent=1))
                return 0
    print("FAILED no launch was bound: one call may be several launches; see `product` and `raced`", file=sys.stderr)
    print(json.dumps(result, indent=1))
    return 1


if __name__ == "__main__":
    sys.exit(main())
