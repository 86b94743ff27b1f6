"""kernelbot.py - a problem of GPU MODE's reference-kernels: `task.yml`, and a reference.py with `generate_input` and `ref_kernel`.

The numbers of a case are the parameters.  Whatever else a case holds (a float, a word, a list) makes it a row of
CASES, chosen by an axis of its own.  Files that the task names travel in the text of the reference.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import inspect
import os
import re

from observe import Observer
from problem import Refused, Script, torch_or_refuse

TITLE = "kernelbot"

TEXT = '''"""{title}: generate_input and ref_kernel, with the files that they import."""
import sys
import types
import torch

FILES = {files!r}
FIXED = {fixed!r}    # parameters that stay
FROM = {where!r}
SIZES = {sizes!r}
CASES = {cases!r}    # what is no size, by the axis `case`
UNREAD = {unread!r}    # inputs that ref_kernel does not read: room for its answer, or nothing


def imported(name):
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(FILES[name], name + ".py", "exec"), module.__dict__)
    return module


for other in FILES:
    if other != "reference":
        imported(other)
reference = imported("reference")


def make_inputs(axes_and_scalars, device):
    axes = {{**FIXED, **axes_and_scalars}}
    seed = axes.pop("kl_seed", 1) % (1 << 31)
    case = {{**{{k: axes[k] for k in SIZES}}, **CASES[axes.get("case", 1) - 1]}}
    if {takes_seed!r}:
        case["seed"] = seed
    data = reference.generate_input(**case)
    made = {{{accesses}}}
    return {{k: torch.zeros_like(v) if k in UNREAD else v for k, v in made.items()}}


def run({arguments}):
    returned = reference.ref_kernel({rebuilt})
    return {outputs}
'''


def is_one(place):
    return os.path.isfile(os.path.join(place, "task.yml")) or os.path.basename(place) == "task.yml"


def folder_of(place):
    return place if os.path.isdir(place) else os.path.dirname(place) or "."


def name_of(place, source):
    folder = os.path.abspath(folder_of(place))
    inside = os.path.relpath(folder, os.path.abspath(folder_of(source)))
    return os.path.basename(folder) if inside == "." else inside.removeprefix("problems/").replace(os.sep, ".")


def yaml_of(place):
    path = os.path.join(folder_of(place), "task.yml")
    try:
        import yaml
    except ImportError:
        raise Refused("a task.yml needs PyYAML: python3 -m pip install pyyaml", missing="yaml") from None
    try:
        with open(path, errors="replace") as file:
            task = yaml.safe_load(file)
    except yaml.YAMLError as error:
        raise Refused(f"task.yml: {str(error).splitlines()[0]}") from None
    if not isinstance(task, dict):
        raise Refused("task.yml is no table")
    return task


def files_of(task, folder):
    """Python that the reference may import, in the order of the task, the reference last."""
    files = {}
    for entry in task.get("files") or []:
        name, source = entry.get("name", ""), entry.get("source", "")
        path = os.path.join(folder, source)
        if name.endswith(".py") and not source.startswith("@") and name not in ("eval.py", "submission.py") and os.path.isfile(path):
            with open(path, errors="replace") as file:
                files[name[:-3]] = file.read()
    if "reference" not in files:
        raise Refused("task.yml names no reference.py")
    known = {k: v for k, v in files.items() if k != "reference"}
    order = sorted(known, key=lambda k: sum(bool(re.search(rf"\b{o}\b", v)) for o, v in [(o, known[k]) for o in known if o != k]))
    return {**{k: known[k] for k in order}, "reference": files["reference"]}


def split(cases):
    """(sizes, rows of everything else): a size is a whole number above 0 that every case has."""
    sizes = [k for k in cases[0] if k != "seed" and all(type(c.get(k)) is int and c[k] > 0 for c in cases)]
    rest = []
    for case in cases:
        other = {k: v for k, v in case.items() if k not in sizes and k != "seed"}
        if other not in rest:
            rest.append(other)
    return sizes, rest


def is_number(value):
    return isinstance(value, (bool, int, float))


def parts(torch, value, access, names, out):
    """Tensors and numbers of nested tuples, lists and tables, with the expression that reaches each; and the text that puts it together again."""
    if isinstance(value, torch.Tensor) or is_number(value):
        base = names.get(access) or re.sub(r"\W+", "_", access).strip("_")
        name = base if base not in out else f"{base}_{len(out)}"
        out[name] = access
        return f"{name}.clone()" if isinstance(value, torch.Tensor) else name
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {parts(torch, v, f'{access}[{k!r}]', names, out)}" for k, v in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        inner = "".join(parts(torch, v, f"{access}[{i}]", names, out) + ", " for i, v in enumerate(value))
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if value is None or isinstance(value, str):
        return repr(value)
    raise Refused(f"generate_input gives a {type(value).__name__}: only tensors, numbers and tuples, lists and tables of them can be passed to a kernel")


def given_names(source, function):
    """What the reference calls the parts of its argument."""
    node = next((f for f in ast.walk(ast.parse(source)) if isinstance(f, ast.FunctionDef) and f.name == function), None)
    if not node or not node.args.args:
        return {}
    whole, names = node.args.args[0].arg, {"data": node.args.args[0].arg}
    for n in ast.walk(node):
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Name) and n.value.id == whole and isinstance(n.targets[0], ast.Tuple):
            names.update({f"data[{i}]": t.id for i, t in enumerate(n.targets[0].elts) if isinstance(t, ast.Name) and t.id != "_"})
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Subscript) and isinstance(n.value.value, ast.Name) and n.value.value.id == whole \
                and isinstance(n.targets[0], ast.Name):
            names[f"data{ast.unparse(n.value)[len(whole):]}"] = n.targets[0].id
    return names


def read(place, _inputs):
    task, folder = yaml_of(place), folder_of(place)
    if task.get("multi_gpu"):
        raise Refused("it runs on several GPUs, and a task is judged on one")
    if task.get("lang", "py") not in ("py", "cu"):
        raise Refused(f"its language is {task['lang']}, not Python")
    torch = torch_or_refuse("generate_input")
    cases = [c for c in (task.get("tests") or []) + (task.get("benchmarks") or []) if isinstance(c, dict)]
    if not cases:
        raise Refused("task.yml has neither tests nor benchmarks")
    files = files_of(task, folder)
    sizes, rest = split(cases)
    name = name_of(place, place)
    blank = dict(title=name, files=files, fixed={}, where={}, sizes=sizes, cases=rest, unread=[], takes_seed=False, accesses="'data': data", arguments="", rebuilt="None",
                 outputs="returned")
    probe = Script(TEXT.format(**blank))
    takes_seed = "seed" in inspect.signature(probe.space["reference"].generate_input).parameters
    rows = [{**{k: c[k] for k in sizes}, **({"case": rest.index({k: v for k, v in c.items() if k not in sizes and k != "seed"}) + 1}
                                           if len(rest) > 1 else {})} for c in cases]
    small = min(rows, key=lambda c: sum(c.values()))
    probe = Script(TEXT.format(**{**blank, "takes_seed": takes_seed}))
    data, accesses = probe.make(small)["data"], {}
    unread = []
    rebuilt = parts(torch, data, "data", given_names(files["reference"], "ref_kernel"), accesses)
    if not any(isinstance(v, torch.Tensor) for v in flat(data)):
        raise Refused("generate_input gives no tensor")

    def text(fixed, where):
        return TEXT.format(**{**blank, "fixed": fixed, "where": where, "takes_seed": takes_seed, "unread": unread, "rebuilt": rebuilt, "arguments": ", ".join(accesses),
                              "accesses": ", ".join(f"{n!r}: {a}" for n, a in accesses.items())})
    unread += not_read(torch, Script(text({}, {})), small)
    n_tests = len([c for c in task.get("tests") or [] if isinstance(c, dict)])
    seen, real = [], []
    for i, row in enumerate(rows):
        if row not in seen:
            real.append((f"test-{i + 1}" if i < n_tests else f"benchmark-{i - n_tests + 1}", row, i < n_tests))
            seen.append(row)
    if all(hidden for _, _, hidden in real):
        real[-1] = (*real[-1][:2], False)
    p = Observer(name, TITLE, text, real, sizes + (["case"] if len(rest) > 1 else [])).problem(" ".join(str(task.get("description", "")).split())[:400])
    p.tags = ["dialect:kernelbot"]
    return p


def not_read(torch, script, row):
    """Tensors that may hold anything: the answers stay.  What is never read may never have been written, and then differs each time."""
    script.space["FIXED"] = row
    try:
        made = script.make(row)
        right, found = script.run(made), []
        for name, value in made.items():
            if isinstance(value, torch.Tensor):
                others = script.run({**made, name: torch.zeros_like(value)}), script.run({**made, name: torch.ones_like(value)})
                found += [name] * all(len(o) == len(right) and all(torch.equal(a, b) for a, b in zip(o, right)) for o in others)
        return found
    except Exception:    # then it is seen where its shapes are
        return []


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [x for v in value for x in flat(v)] if isinstance(value, (tuple, list)) else [value]
