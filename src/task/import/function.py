"""function.py - a plain Python function, MODULE:FUNCTION or FILE.py:FUNCTION, and what it takes.

What it takes is said (--inputs 'x: float32[M=512,N=1024], s: 0.5'), or shown: `example_inputs()` beside the
function returns them, and every size that occurs becomes an axis.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import inspect
import os
import re

from declared import BYTES, Declared
from problem import Refused, Script, dtype_name, torch_or_refuse

TITLE = "a Python function"


def is_one(source):
    return bool(re.fullmatch(r"[\w./~-]+:[A-Za-z_]\w*", source)) and not os.path.exists(source)


def name_of(place, _source):
    return place.rpartition(":")[2]


def text_of(place):
    module, _, function = place.rpartition(":")
    if module.endswith(".py"):
        if not os.path.isfile(module):
            raise Refused(f"{module}: no such file")
        with open(module, errors="replace") as file:
            text = file.read()
        if not any(isinstance(n, ast.FunctionDef) and n.name == function for n in ast.parse(text).body):
            raise Refused(f"{module} has no function `{function}`")
    else:
        text = f"import {module}\n{function} = {module}.{function}\nexample_inputs = getattr({module}, 'example_inputs', None)\n"
    return text + ("" if function == "run" else f"\n\nrun = {function}\n")


def number(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise Refused(f"--inputs: `{text}` is neither DTYPE[AXIS=SIZE,...] nor a number") from None


def scalar(name, value, scalars):
    if not isinstance(value, (bool, int, float)):
        raise Refused(f"`{name}` is a {type(value).__name__}: only tensors and numbers can be passed to a kernel")
    scalars[name] = value
    return {"shape": None, "dtype": "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"}


def spoken(text):
    """({axis: size}, {input: tensor}, {input: number}) of --inputs."""
    sizes, inputs, scalars = {}, {}, {}
    for part in filter(None, (p.strip() for p in re.split(r",(?![^\[]*\])", text))):
        name, _, what = (x.strip() for x in part.partition(":"))
        tensor = re.fullmatch(r"(\w+)\[([^\]]*)\]", what)
        if not name.isidentifier() or not what:
            raise Refused(f"--inputs: `{part}` is no NAME: DTYPE[AXIS=SIZE,...]")
        if not tensor:
            inputs[name] = scalar(name, number(what), scalars)
            continue
        if tensor[1] not in BYTES:
            raise Refused(f"--inputs: there is no data type {tensor[1]}; there are {' '.join(BYTES)}")
        shape = []
        for dim in filter(None, (d.strip() for d in tensor[2].split(","))):
            axis, _, size = (x.strip() for x in dim.partition("="))
            if size and not size.isdigit() or not size and not axis.isdigit() and axis not in sizes:
                raise Refused(f"--inputs: the size of `{axis}` in `{part}` is not known: say {axis}=SIZE once")
            if size:
                sizes[axis] = int(size)
            shape.append(int(axis) if axis.isdigit() else axis)
        inputs[name] = {"shape": shape, "dtype": tensor[1]}
    return sizes, inputs, scalars


def shown(script, names):
    """The same of example_inputs(): equal sizes are one axis."""
    torch, sizes, inputs, scalars = script.torch, {}, {}, {}
    example = script.space.get("example_inputs")
    if not example:
        raise Refused("what does it take? say --inputs 'x: float32[M=512,N=1024], s: 0.5', or define example_inputs() beside it")
    given = example()
    given = given if isinstance(given, dict) else dict(zip(names, given if isinstance(given, (tuple, list)) else [given]))
    for name, value in given.items():
        if not isinstance(value, torch.Tensor):
            inputs[name] = scalar(name, value, scalars)
            continue
        shape = [next((a for a, s in sizes.items() if s == size), size) if size > 1 else 1 for size in value.shape]
        for i, size in enumerate(shape):
            if isinstance(size, int) and size > 1:
                shape[i] = next((a for a, s in sizes.items() if s == size), f"n{len(sizes)}")
                sizes[shape[i]] = size
        inputs[name] = {"shape": shape, "dtype": dtype_name(value)}
    return sizes, inputs, scalars


def parameters(function):
    """Names of what it can be given; None: it does not say."""
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:
        return None
    return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def of_these(text, names):
    """The same reference with no other parameters: one more would be taken for the place of a result (destination passing)."""
    given = ", ".join(f"{n}={n}" for n in names)
    return f"{text}\n\nwhole = run\n\n\ndef run({', '.join(names)}):\n    return whole({given})\n"


def read(place, spoken_inputs):
    torch_or_refuse("a Python function")
    text = text_of(place)
    try:
        script = Script(text)
    except (ImportError, AttributeError) as error:
        raise Refused(str(error)) from None
    names = parameters(script.space["run"])
    sizes, inputs, scalars = spoken(spoken_inputs) if spoken_inputs else shown(script, names or [])
    names = list(inputs) if names is None else names    # a function in C does not say its own
    unknown = [n for n in inputs if n not in names]
    if unknown:
        raise Refused(f"the function has no parameter `{unknown[0]}`; it has {', '.join(names) or 'none'}")
    said = inspect.getdoc(script.space["run"]) or ""
    if set(names) - set(inputs):
        text = of_these(text, [n for n in names if n in inputs])
    axes = {n: {"type": "var"} for n in sizes}
    t = Declared({"name": name_of(place, ""), "axes": axes, "inputs": {n: inputs[n] for n in names if n in inputs}, "reference": text,
                  "description": " ".join(said.split())[:400]}, TITLE)
    if not t.script:
        raise Refused(t.p.notes[-1])
    t.scalars = scalars
    return t.problem(sizes, [])
