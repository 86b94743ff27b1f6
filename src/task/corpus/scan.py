"""scan.py - what in a package could be a task: modules with a forward, functions of tensors, launchers of Triton kernels.

SPDX-License-Identifier: Apache-2.0
"""
import ast
import re

from closure import dotted

NETWORKS = {"Module", "nn.Module", "torch.nn.Module"}
HINTS = ("torch.", "F.", "nn.", "tl.")
TENSORS = re.compile(r"Tensor|Any|Array|^T$|Num|Float\b")    # of an annotation
NOT_HERE = ("plot_", "load_", "save_", "main", "setup", "get_config", "register_", "read_", "write_", "download_", "parse_", "convert_", "print_")


class Candidate:
    def __init__(self, module, node, kind):
        self.module, self.node, self.kind, self.name = module, node, kind, node.name

    @property
    def id(self):
        return f"{self.module.name}:{self.name}"


def is_network(modules, module, node, depth=0):
    """Does a class come from torch.nn.Module, as far as its package's text tells?"""
    if depth > 8:
        return False
    for base in node.bases:
        text = dotted(base)
        if text in NETWORKS and ("." in text or is_torch(modules, module, "Module")):
            return True
        found = text and modules.lookup(module, text.split(".")[0])
        if not found:
            continue
        home, bound, _ = found
        if isinstance(bound, ast.ClassDef) and (home, bound) != (module, node) and is_network(modules, home, bound, depth + 1):
            return True
        if isinstance(bound, (ast.Import, ast.ImportFrom)) and isinstance(bound, ast.ImportFrom) and (home.absolute(bound) + ".").startswith("torch.nn."):
            return True
        if text.startswith("nn.") and isinstance(bound, (ast.Import, ast.ImportFrom)):
            return True
    return False


def is_torch(modules, module, name):
    found = modules.lookup(module, name)
    return bool(found) and (isinstance(found[1], ast.ImportFrom) and found[0].absolute(found[1]).startswith("torch") or found[0].name == "torch.nn.modules.module")


def has_forward(modules, module, node, depth=0):
    if any(isinstance(n, ast.FunctionDef) and n.name == "forward" for n in node.body):
        return True
    for base in node.bases:
        found = depth < 8 and dotted(base) and modules.lookup(module, dotted(base).split(".")[0])
        if found and isinstance(found[1], ast.ClassDef) and found[1] is not node and has_forward(modules, found[0], found[1], depth + 1):
            return True
        if found and isinstance(found[1], (ast.Import, ast.ImportFrom)) and dotted(base) not in NETWORKS:
            return True    # of torch's own layers
    return False


def is_of_tensors(node):
    """A function that computes and returns something, from what is given."""
    a = node.args
    if not (a.posonlyargs or a.args) or a.args and a.args[0].arg in ("self", "cls") or node.name.startswith(NOT_HERE) or node.name.startswith("test"):
        return False
    needed = [x.annotation for x in [*a.posonlyargs, *a.args][:len(a.posonlyargs) + len(a.args) - len(a.defaults)]]
    if needed and all(needed) and not any(TENSORS.search(ast.unparse(x)) for x in needed):
        return False
    own = [n for n in ast.walk(node) if isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await))]
    gives = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node))
    text = " ".join(dotted(n) for n in ast.walk(node) if isinstance(n, ast.Attribute))
    return gives and not own and any(h in text + " " for h in HINTS)


def is_kernel(node):
    return any("jit" in ast.unparse(d) for d in node.decorator_list)


def uses_triton(module):
    return "triton" in module.bound or any("triton" in (module.absolute(s) or "") for s in module.stars)


def candidates(modules, module):
    triton = uses_triton(module)
    for name in module.bound:
        node = module.bound[name][0]
        if isinstance(node, ast.ClassDef):
            if is_network(modules, module, node) and has_forward(modules, module, node):
                yield Candidate(module, node, "module")
        elif isinstance(node, ast.FunctionDef) and name == node.name:
            if triton and is_kernel(node):
                continue
            if triton and launches(node, module):
                yield Candidate(module, node, "triton")
            elif is_of_tensors(node):
                yield Candidate(module, node, "function")


def launches(node, module):
    """Does it launch a Triton kernel, `kernel[grid](...)`, itself or by one function of its file?"""
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript) and isinstance(n.func.value, ast.Name):
            return True
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id != node.name:
            inner = module.bound.get(n.func.id, [None])[0]
            if isinstance(inner, ast.FunctionDef) and any(isinstance(k, ast.FunctionDef) is False and isinstance(k, ast.Call) and
                                                          isinstance(k.func, ast.Subscript) for k in ast.walk(inner)):
                return True
            if isinstance(inner, ast.FunctionDef) and any("pointwise_dynamic" in ast.unparse(d) for d in inner.decorator_list):
                return True
    return False


def kernels_of(module):
    return sorted(n for n, nodes in module.bound.items() if isinstance(nodes[0], ast.FunctionDef) and is_kernel(nodes[0]))
