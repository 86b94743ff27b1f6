"""jit_baseline.py - a kernel file in Triton launched by Triton itself: a baseline that bench/jit.py puts into a copy of a task.

A baseline is one text with no folder around it, so bench/jit.py writes two things into it.  TASK: shapes and dtypes of the task's
tensors, and for some sizes of its axes (`cases`) which kernel with which params.  KERNELS: the kernels' files, as the gate gets them."""
import functools
import hashlib
import importlib.util
import re
import tempfile
from pathlib import Path

import torch
import triton

TASK = {}
KERNELS = {}
PLACE = Path(tempfile.mkdtemp())    # Triton reads a kernel's text from its file
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32, "i64": torch.int64}
CLAUSE = re.compile(r"(\w+)\(((?:[^()]|\([^()]*\))*)\)")
made = {}


@functools.cache
def load(name):
    """A file's module, and its directives as pairs of a word and the rest."""
    (PLACE / name).write_text(KERNELS[name])
    spec = importlib.util.spec_from_file_location("kernel", PLACE / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, [line[3:].split(None, 1) for line in re.sub(r"\\\n#!", "", KERNELS[name]).split("\n") if line.startswith("#! ")]


def split(text):
    """At commas that are in no brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        parts = parts + [""] if c == "," and not depth else parts[:-1] + [parts[-1] + c]
    return [p.strip() for p in parts if p.strip()]


def value(text, names):
    return eval(text.replace("/", "//"), {}, names)


def axes_of(inputs):
    """Axes as the inputs' shapes have them."""
    axes = {}
    for name, shape in TASK["shapes"].items():
        axes.update({axis: size for axis, size in zip(shape, inputs[name].shape) if axis.isidentifier()} if name in inputs and shape else {})
    return axes


def case_of(inputs):
    """What is launched at these sizes; at sizes that no case names, the first."""
    axes = axes_of(inputs)
    return next((case for case in TASK["cases"] if all(axes[name] == size for name, size in case["axes"].items() if name in axes)), TASK["cases"][0])


def names_of(inputs, lines, params):
    """Axes, then params and lets of the file."""
    names = {"cdiv": triton.cdiv, "pow2": triton.next_power_of_2, "min": min, "max": max, "f32": float, **axes_of(inputs)}
    names.update({name: held for name, held in inputs.items() if isinstance(held, (int, float))})
    for word, rest in lines:
        if word in ("param", "let"):
            name, text = (s.strip() for s in rest.split("{")[0].split("=", 1))
            names[name] = params.get(name, value(text, names)) if word == "param" else value(text, names)
    return names


def memory(inputs, lines, names):
    """Every tensor, buffer and descriptor that a launch can name; outputs and buffers are new."""
    device = next(t.device for t in inputs.values() if isinstance(t, torch.Tensor))
    held = dict(inputs)
    for name, (dtype, shape) in TASK["outputs"].items():
        held[name] = torch.empty([value(s, names) for s in shape], dtype=getattr(torch, dtype), device=device)
    for word, rest in lines:
        if word == "buffer":
            name, dtype, shape = re.match(r"(\w+):\s*(\w+)\[(.*)\]", rest).groups()
            held[name] = torch.empty([value(s, names) for s in split(shape)], dtype=DTYPES[dtype], device=device)
        if word == "tensormap":
            from triton.tools.tensor_descriptor import TensorDescriptor
            name, tensor, box = re.match(r"(\w+):\s*(\w+)\s+box\((.*)\)", rest).groups()
            box = [value(s, names) for s in split(box)][::-1]
            # A map of fewer dimensions than its tensor takes the outer ones together.
            of = held[tensor].flatten(0, held[tensor].dim() - len(box)) if held[tensor].dim() > len(box) else held[tensor]
            held[name] = TensorDescriptor.from_tensor(of, box)
    return held


def argument(text, held, names):
    return held[text] if text in held else value(text, names)


def launch(module, rest, held, names):
    entry, clauses = rest.split(None, 1)[0], dict(CLAUSE.findall(rest.split(None, 1)[1]))
    function = getattr(module, entry)
    given = {}
    for text in split(clauses["args"]):
        name, _, right = text.partition("=")
        if right and not right.startswith("=") and name.strip().isidentifier():
            given[name.strip()] = argument(right.strip(), held, names)
    free = [p.name for p in function.params if not p.is_constexpr and p.name not in given]
    plain = [t for t in split(clauses["args"]) if t.partition("=")[0].strip() not in given]
    given.update({name: argument(text, held, names) for name, text in zip(free, plain)})
    given.update({p.name: names[p.name] for p in function.params if p.is_constexpr and p.name not in given and p.name in names})
    options = {"warps": "num_warps", "stages": "num_stages", "ctas": "num_ctas", "maxnreg": "maxnreg"}
    given.update({to: value(clauses[of], names) for of, to in options.items() if of in clauses})
    grid = [value(s, names) for s in split(clauses["grid"])]
    made[entry] = function[tuple(grid + [1] * (3 - len(grid)))](**given)


def run(**inputs):
    case = case_of(inputs)
    module, lines = load(case["kernel"])
    names = names_of(inputs, lines, case["params"])
    held = memory(inputs, lines, names)
    for word, rest in lines:
        if word == "launch":
            launch(module, rest, held, names)
    return {name: held[name] for name in TASK["outputs"]}


def describe():
    """With a hash of its code, to be held against the gate's."""
    codes = " ".join(f"{name} {hashlib.sha256(m.asm['cubin']).hexdigest()[:16]}" for name, m in made.items() if hasattr(m, "asm"))
    return f"triton {triton.__version__}, JIT {codes}".strip()


if hasattr(triton, "set_allocator"):    # of descriptors that a kernel makes
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
