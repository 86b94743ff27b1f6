"""extract - one kernel of an installed package, or of a file, as one file that the gate can judge.

usage: python3 -B triton_extract MODULE:FUNCTION|FILE.py:FUNCTION sm_NN [DEFINITION.json]

Writes the file to stdout.  What cannot be extracted is a line `FILE:LINE:COLUMN: error: ...` on stderr
and exit status 1.  Nothing of the package is imported or run: modules are found on the path without
their parents (source.py), and are read as syntax trees.

An evaluator (evaluator.py) finds the configurations of an autotuner, what a heuristic chooses, which side
of a module's `if` holds for the device, and what a wrapper passes to the kernel.  A slicer (slicer.py)
copies the text of the kernel and of all it names.  A draft of the directives (draft.py) is put above it.
What none of them knows is said in the file, never guessed.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import importlib.metadata
import os
import re
import resource
import sys

from source import Modules, Refused
from values import Defined

from evaluator import Evaluator, jit_decorator
from slicer import sliced
from draft import Draft, Task

MOST_MEMORY = 4 << 30
def distribution_of(module, modules):
    """The installed package that a module came with, by what it says of itself."""
    top = module.name.split(".")[0]
    root = modules.find(top)
    folder = os.path.dirname(os.path.dirname(root.path) if root.package else root.path)
    found = list(importlib.metadata.distributions(path=[folder]))
    wanted = os.path.relpath(module.path, folder)    # several packages may share a folder
    for d in found:
        if any(str(f) == wanted for f in d.files or ()):
            return d
    return next((d for d in found for f in d.files or () if f.parts and f.parts[0] in (top, top + ".py")), None)


def licence_of(d):
    said = d.metadata.get("License-Expression") or (d.metadata.get("License") or "").splitlines()[:1]
    said = said if isinstance(said, str) else said[0] if said else ""
    for c in d.metadata.get_all("Classifier") or []:
        if c.startswith("License ::") and not said:
            said = c.split("::")[-1].strip()
    return said or "not said"


def licence_texts(d):
    """The files that state the licence, and whose copyright they name."""
    for f in (d.files or ()) if d else ():
        if re.match(r"LICEN[SC]E|NOTICE|COPYING", f.name, re.I) and ".dist-info" in str(f) and f.locate().is_file():
            owners = re.findall(r"^\s*(Copyright\b.*\d{4}.*)$", f.locate().read_text(errors="replace"), re.M)
            yield f"{f}" + "".join(f"; {o.strip()}" for o in owners[:4])


def notice_of(module):
    """The comments at the top of a file, where they speak of rights."""
    lines = []
    for line in module.bytes.decode(errors="replace").splitlines():
        if line.strip() and not line.startswith("#"):
            break
        lines.append(line.rstrip())
    text = "\n".join(lines).strip("\n")
    return text if re.search(r"copyright|licen[sc]e|SPDX", text, re.I) else ""


def said_of(path, modules):
    """A path without the machine's own folders."""
    return next((os.path.relpath(path, p) for p in modules.path if os.path.abspath(path).startswith(os.path.abspath(p) + os.sep)),
                os.path.basename(path))


def head(module, node, slice_, draft, modules):
    e, d = draft.e, distribution_of(module, modules)
    yield f"Extracted by klineage from {spec_name(module, node)}"
    yield f"  package   {d.metadata['Name']} {d.version}, licence {licence_of(d)}" if d else "  package   none: a file of its own"
    for text in licence_texts(d):
        yield f"  licence   {text}"
    for m in slice_.modules:
        yield f"  file      {said_of(m.path, modules)}" + (f", line {node.lineno}" if m is module else "")
    for path in dict.fromkeys(e.tables):
        yield f"  table     {said_of(path, modules)}"
    if draft.choice.configs:
        yield f"  configurations  {len(draft.choice.configs)}; the params have every value that occurs in them"
    for text in draft.choice.left_out:
        yield f"  left out  {text}"
    for text in dict.fromkeys(e.notes):
        yield f"  note      {text}"
    if draft.wrapper:
        w = draft.wrapper
        yield f"  launch    as {w.function.node.name} (line {w.launch.node.lineno}) does for the task {draft.task.name}"
        if w.swap:
            yield f"  assumed   {w.swap} is passed transposed"
        for text in draft.assumed:
            yield f"  assumed   {text}"
    for text in draft.choice.left_to_say + draft.gaps:
        yield f"  to fill in  {text}"


def spec_name(module, node):
    return f"{module.name}:{node.name}"


def written(module, node, slice_, draft, modules):
    yield "#! surface triton"
    yield from draft.text()
    for text in head(module, node, slice_, draft, modules):
        yield f"# {text}"
    for notice in dict.fromkeys(filter(None, map(notice_of, slice_.modules))):
        yield "#"
        yield notice
    yield "import triton"
    yield "import triton.language as tl"
    yield from slice_.imports.values()
    if slice_.constants:
        yield ""
        yield from slice_.constants.values()
    for text in slice_.functions:
        yield "\n"
        yield text


def kernel_of(module, name, evaluator):
    """The function, refused where it is no kernel."""
    found = evaluator.named(module, name)
    if found is KeyError:
        nested = next((n for n in ast.walk(module.tree) if isinstance(n, ast.FunctionDef) and n.name == name), None)
        if nested:
            raise Refused(module, nested, f"'{name}' stands inside another function or class, whose names are known only where it runs")
        names = [n.name for n in module.tree.body if isinstance(n, ast.FunctionDef)
                 and jit_decorator(evaluator, module, n) is not None]
        raise Refused(module, None, f"there is no '{name}'; its @triton.jit functions: {' '.join(names) or 'none'}")
    if isinstance(found, Defined) and jit_decorator(evaluator, found.module, found.node) is None:
        for _, node in found.module.bound.get(name, []):    # a wrapper of the same name may stand below it
            if isinstance(node, ast.FunctionDef) and jit_decorator(evaluator, found.module, node) is not None:
                return Defined(found.module, node)
    if not isinstance(found, Defined) or not isinstance(found.node, ast.FunctionDef):
        raise Refused(module, None, f"'{name}' is no function whose text is there")
    if jit_decorator(evaluator, found.module, found.node) is None:
        what = " ".join("@" + ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in found.node.decorator_list)
        raise Refused(found.module, found.node, f"'{name}' is no @triton.jit function" + (f": {what}" if what else ""))
    for d in found.node.decorator_list:
        if ast.unparse(d).startswith("pointwise_dynamic"):
            raise Refused(found.module, d, f"the kernel around '{name}' is generated when it runs; this is what it does with one element")
    return found


def main():
    spec, arch, definition = sys.argv[1], int(re.sub(r"\D", "", sys.argv[2])), sys.argv[3:4]
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]
    sys.setrecursionlimit(4000)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    place, _, name = spec.rpartition(":")
    modules, module = Modules(), None
    try:
        if place.endswith(".py") and not os.path.isfile(place):
            raise Refused(None, None, "no such file")
        module = modules.of_file(place) if place.endswith(".py") else modules.find(place)
        if module is None:
            raise Refused(None, None, f"no module '{place}' in Python is on the path of this interpreter")
        evaluator = Evaluator(modules, arch)
        kernel = kernel_of(module, name, evaluator)
        slice_ = sliced(evaluator, kernel.module, kernel.node)
        draft = Draft(evaluator, kernel.module, kernel.node, Task(definition[0]) if definition else None)
        lines = list(written(kernel.module, kernel.node, slice_, draft, modules))
    except Refused as error:
        print(f"{error.path or place}:{error.line}:{error.column}: error: {error}", file=sys.stderr)
        return 1
    except (RecursionError, MemoryError):
        print(f"{place}:1:1: error: nested deeper, or larger, than is followed", file=sys.stderr)
        return 1
    print("\n".join(lines))
    print("".join(f"{line[4:]}\n" for line in lines if line.startswith(("#   assumed", "#   to fill in"))), end="", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
