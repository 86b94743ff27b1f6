"""slicer.py - the text of a kernel and of all that it names.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import builtins
import itertools
import math
import re
import textwrap

from source import Refused
from values import Defined, Outside, Scope, Sym, Tensor, Within, is_constant, known
from facts import has_attribute
from evaluator import is_constexpr, is_kernel, jit_decorator

# What a kernel file may import (src/surface/triton/frontend.py).
IMPORTABLE = {"triton", "triton.language", "triton.language.math", "triton.language.standard", "triton.language.extra",
              "triton.language.extra.libdevice", "triton.language.extra.cuda", "triton.language.extra.cuda.libdevice"}
JIT_OPTIONS = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline")


NOT_IN_KERNELS = (ast.Import, ast.ImportFrom, ast.Lambda, ast.ClassDef, ast.Global, ast.Nonlocal, ast.FunctionDef,
                  ast.AsyncFunctionDef, ast.Await, ast.Yield, ast.YieldFrom, ast.Try, ast.With, ast.Raise, ast.Delete,
                  ast.NamedExpr)


class Conflict(Exception):
    """A name that a function binds itself."""


class Slice:
    def __init__(self, evaluator, forbidden):
        self.e, self.forbidden = evaluator, forbidden
        self.names, self.taken = {}, {"triton", "tl"}    # by what they stand for; those given out
        self.imports, self.constants, self.functions, self.modules = {}, {}, [], []

    def name(self, key, wanted):
        if key not in self.names:
            for i in itertools.count():
                name = wanted if i == 0 else f"{wanted}_{i + 1}"
                if name not in self.taken and name not in self.forbidden:
                    break
            self.names[key] = name
            self.taken.add(name)
        return self.names[key]

    def function(self, module, node):
        key = (module.name, node.name, node.lineno)
        if key in self.names:
            return self.names[key]
        name = self.name(key, node.name)
        if module not in self.modules:
            self.modules.append(module)
        options = self.options(module, node)
        text = Rewriting(self, module, node).text(name)
        self.functions.append(f"@triton.jit{options}\n{text}")
        return name

    def options(self, module, node):
        decorator = jit_decorator(self.e, module, node)
        if not isinstance(decorator, ast.Call):
            return ""
        kept = []
        for k in decorator.keywords:
            value = self.e.value(k.value, Scope(module, {}))
            if k.arg in JIT_OPTIONS:
                if not known(value):
                    raise Refused(module, k.value, f"an option of the kernel that is no constant: {k.arg}")
                kept.append(f"{k.arg}={value!r}")
        return f"({', '.join(kept)})" if kept else ""

    def outside(self, name, wanted, module, node):
        """The local name of something of Triton's."""
        name = re.sub(r"^triton\.language\.core(\.|$)", r"triton.language\1", name)
        if name in ("triton", "triton.language"):
            return "triton" if name == "triton" else "tl"
        parent, _, leaf = name.rpartition(".")
        if name not in IMPORTABLE and parent not in IMPORTABLE:
            raise Refused(module, node, f"'{name}' is nothing that a kernel file may import")
        if name not in IMPORTABLE and has_attribute(self.e, parent, leaf) is False:
            raise Refused(module, node, f"the installed Triton has no '{name}'")
        local = self.name(name, wanted)
        if name in IMPORTABLE:
            self.imports[local] = f"import {name} as {local}"
        else:
            self.imports[local] = f"from {parent} import {leaf}" + ("" if local == leaf else f" as {local}")
        return local

    def constant(self, value, key, wanted):
        local = self.name(key, wanted)
        self.constants[local] = f"{local} = tl.constexpr({literal(value)})"
        return local


def literal(value):
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, (tuple, list)):
        return "(" + "".join(literal(v) + ", " for v in value) + ")"
    return repr(value)


def root_of(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node)
        node = node.value
    return (node if isinstance(node, ast.Name) else None), parts


class Rewriting:
    """The text of one function, with the names that it takes from around replaced."""

    def __init__(self, slice_, module, node):
        self.slice, self.e, self.module, self.node = slice_, slice_.e, module, node
        self.edits, self.starts = [], [0]
        for line in module.bytes.splitlines(True):
            self.starts.append(self.starts[-1] + len(line))
        self.bound = {a.arg for n in ast.walk(node) if isinstance(n, ast.arguments) for a in n.posonlyargs + n.args + n.kwonlyargs}
        self.bound |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    def offset(self, line, column):
        return self.starts[line - 1] + column

    def replace(self, node, text):
        self.edits.append((self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset), text))

    def text(self, name):
        node, args = self.node, self.node.args
        if args.vararg or args.kwarg:
            raise Refused(self.module, node, "a kernel's parameters are named one by one")
        for a in args.posonlyargs + args.args + args.kwonlyargs:
            self.annotation(a)
        for d in args.defaults + [d for d in args.kw_defaults if d]:
            self.default(d)
        for statement in node.body:
            self.visit(statement)
        start, end = self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)
        head = re.compile(rb"def\s+" + node.name.encode()).match(self.module.bytes, start)
        self.edits.append((head.start(), head.end(), f"def {name}"))
        if node.returns:    # a type for readers, whose names would have to be imported
            close = self.module.bytes.rindex(b"->", 0, self.offset(node.returns.lineno, node.returns.col_offset))
            self.edits.append((close, self.offset(node.returns.end_lineno, node.returns.end_col_offset), ""))
        out = self.module.bytes[start:end]
        for a, b, new in sorted(self.edits, reverse=True):
            out = out[:a - start] + new.encode() + out[b - start:]
        return textwrap.dedent(" " * node.col_offset + out.decode())

    def annotation(self, a):
        """tl.constexpr is kept, whatever it is called here; every other type is for readers."""
        if a.annotation is None:
            return
        first = self.offset(a.lineno, a.col_offset) + len(a.arg.encode())
        last = self.offset(a.annotation.end_lineno, a.annotation.end_col_offset)
        self.edits.append((first, last, ": tl.constexpr" if is_constexpr(self.e, self.module, a) else ""))

    def default(self, node):
        value = self.e.value(node, Scope(self.module, {}))
        if isinstance(value, Outside) and value.name.startswith("triton.language."):
            return self.replace(node, "tl." + value.name.split(".")[-1])
        if not is_constant(value):
            raise Refused(self.module, node, "a default that is no constant")
        if not isinstance(node, ast.Constant):
            self.replace(node, literal(value))

    def visit(self, node):
        if isinstance(node, NOT_IN_KERNELS):
            raise Refused(self.module, node, f"{type(node).__name__.lower()} has no place in a kernel")
        if isinstance(node, (ast.Attribute, ast.Name)):
            root, parts = root_of(node)
            if root is not None:
                if isinstance(root.ctx, ast.Load) and root.id not in self.bound:
                    self.resolve(root, parts)
                return
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def resolve(self, root, parts):
        value, used = self.e.named(self.module, root.id), [root]
        if value is KeyError:
            if not hasattr(builtins, root.id):
                raise Refused(self.module, root, f"'{root.id}' is not defined")
            return
        if isinstance(value, Outside) and value.name == "triton.language" and parts and parts[0].attr == "core":
            used, value = [root, parts[0]], Outside("triton.language.core")    # which the file need not say
        if isinstance(value, Outside) and value.name.startswith("triton.language"):
            return self.of_triton(root, used, value, parts[len(used) - 1:])
        for part in parts:
            if not isinstance(value, (Within, Defined)) and not (isinstance(value, Outside) and self.leaves_triton(value)):
                break
            if isinstance(value, Defined) and not isinstance(value.node, ast.ClassDef):
                break
            value = self.e.member(value, part.attr)
            used.append(part)
        self.put(used, value, ".".join([root.id] + [p.attr for p in parts]))

    def of_triton(self, root, used, value, parts):
        name = "triton.language" if value.name == "triton.language.core" else value.name
        if parts and parts[0].attr == "extern_elementwise":
            raise Refused(self.module, parts[0], "'extern_elementwise' calls code that is not in the file")
        if parts and name in IMPORTABLE and has_attribute(self.e, name, parts[0].attr) is False:
            raise Refused(self.module, parts[0], f"the installed Triton has no '{name}.{parts[0].attr}'")
        self.put(used, value, root.id)

    def leaves_triton(self, value):
        return not value.name.startswith("triton")

    def put(self, used, value, said):
        root, last = used[0], used[-1]
        wanted = last.attr if isinstance(last, ast.Attribute) else last.id
        if isinstance(value, Outside) and value.name.split(".")[0] == "triton":
            local = self.slice.outside(value.name, wanted, self.module, root)
        elif isinstance(value, Defined) and is_kernel(self.e, value):
            local = self.slice.function(value.module, value.node)
        elif is_constant(value):
            local = self.slice.constant(value, (self.module.name, said), wanted)
        else:
            raise Refused(self.module, root, f"'{said}' {self.why(value)}")
        if local in self.bound:
            self.slice.forbidden.add(local)
            raise Conflict
        if local != wanted or len(used) > 1:
            self.replace(last, local)

    def why(self, value):
        if isinstance(value, Defined):
            kind = "class" if isinstance(value.node, ast.ClassDef) else "function"
            return f"is a {kind} of Python, {value.module.name} line {value.node.lineno}; a kernel calls @triton.jit functions"
        if isinstance(value, Outside):
            return "is neither of Triton nor of a package whose text is there"
        if isinstance(value, (dict, Sym, Tensor, Within)):
            return "is no constant"
        return f"is not known without running: {getattr(value, 'why', 'no constant')}"


def sliced(evaluator, module, node):
    forbidden = set()
    while True:
        slice_ = Slice(evaluator, forbidden)
        try:
            slice_.function(module, node)
            return slice_
        except Conflict:
            continue
