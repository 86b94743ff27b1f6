"""launch.py - the directives of a kernel, from the prototype of a function and the parameters of a task.

A parameter of the function takes the tensor, scalar or axis of its own name; all others are named by the user.
How it is passed is what its type says.  SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re

import libclang as cl
from source import Refused

ELEMENT = {"float64": {"double"}, "float32": {"float"}, "float16": {"half", "ushort"}, "bfloat16": {"ushort", "bf16"}, "int64": {"long"},
           "int32": {"int"}, "int16": {"short"}, "int8": {"schar", "char"}, "uint8": {"uchar"}, "bool": {"bool", "uchar"},
           "float8_e4m3fn": {"uchar"}, "float8_e5m2": {"uchar"}}
MACRO = {"float64": "KL_F64", "float32": "KL_F32", "float16": "KL_F16", "bfloat16": "KL_BF16", "int64": "KL_I64", "int32": "KL_I32",
         "int16": "KL_I16", "int8": "KL_I8", "uint8": "KL_U8", "bool": "KL_BOOL", "float8_e4m3fn": "KL_F8E4M3", "float8_e5m2": "KL_F8E5M2"}
WHOLE = {"bool", "char", "schar", "uchar", "short", "ushort", "int", "uint"}
NULL = ("NULL", "0")
RECORDS = {"__half": "half", "__nv_bfloat16": "bf16"}


class Task:
    def __init__(self, definition, host):
        with open(definition, encoding="utf-8") as f:
            read = json.load(f)
        self.axes = list(read.get("axes", {}))
        self.inputs, self.outputs = read.get("inputs", {}), read.get("outputs", {})
        self.tensors = {**self.inputs, **self.outputs}
        self.dtypes = {name: {t.get("dtype", "float32")} for name, t in self.tensors.items()}
        self.workloads(os.path.join(os.path.dirname(definition), "workloads.jsonl"), host)

    def workloads(self, path, host):
        """The types that the shapes of this host give to each tensor."""
        if not os.path.exists(path):
            return
        found = {name: set() for name in self.dtypes}
        with open(path, encoding="utf-8") as f:
            for line in filter(str.strip, f):
                extra = json.loads(line).get("klineage", {})
                if extra.get("on", host) != host:
                    continue
                for name, own in self.dtypes.items():
                    found[name].update({extra["dtypes"][name]} if name in extra.get("dtypes", {}) else own)
        self.dtypes = {name: found[name] or own for name, own in self.dtypes.items()}

    def scalar(self, name):
        return name in self.inputs and self.inputs[name].get("shape", []) is None

    def names(self):
        return [*self.tensors, *self.axes]


class Parameter:
    def __init__(self, unit, cursor, number):
        l = unit.l
        self.name = unit.name(cursor) or f"#{number + 1}"
        spelled = l.clang_getCursorType(cursor)
        self.type = unit.text(l.clang_getTypeSpelling(spelled))
        real = l.clang_getCanonicalType(spelled)
        inner = l.clang_getCanonicalType(l.clang_getPointeeType(real)) if real.kind in (cl.POINTER, *cl.ARRAYS) else None
        self.pointer = inner is not None
        self.const = bool(inner is not None and l.clang_isConstQualifiedType(inner))
        self.function = inner is not None and inner.kind in cl.FUNCTION_TYPES
        kind = inner if inner is not None else real
        named = unit.text(l.clang_getTypeSpelling(kind)).replace("const ", "").replace("struct ", "")
        self.element = cl.TYPES.get(kind.kind, "") or RECORDS.get(named, "")
        self.bytes = l.clang_Type_getSizeOf(kind)
        self.spelled = unit.text(l.clang_getTypeSpelling(real))


def mapping(text):
    found = {}
    for part in filter(None, (p.strip() for p in split(text))):
        name, eq, value = part.partition("=")
        if not eq or not name.strip() or not value.strip():
            raise Refused(f"--args: '{part}' is not PARAMETER=VALUE")
        found[name.strip()] = value.strip()
    return found


def split(text):
    """At commas outside of parentheses."""
    depth, part = 0, ""
    for ch in text:
        depth += (ch == "(") - (ch == ")")
        if ch == "," and depth == 0:
            yield part
            part = ""
        else:
            part += ch
    yield part


class Launch:
    def __init__(self, unit, function, task, args, where, cuda=False):
        self.task, self.where, self.takes = task, where, {}
        self.said = mapping(args)
        n = unit.l.clang_Cursor_getNumArguments(function)
        self.parameters = [Parameter(unit, unit.l.clang_Cursor_getArgument(function, i), i) for i in range(n)]
        own = {p.name for p in self.parameters}
        self.host = {name: value for name, value in self.said.items() if name not in own}    # variables of the call's own
        if not cuda:
            self.refuse_names(self.host)
        result = unit.l.clang_getCanonicalType(unit.l.clang_getCursorResultType(function))
        self.result = unit.text(unit.l.clang_getTypeSpelling(result))
        if result.kind in (cl.POINTER, cl.RECORD_TYPE, cl.VECTOR) or cl.TYPES.get(result.kind) in ("float", "double", "half"):
            raise Refused(f"{where}: error: it returns its result ({self.result}), and a launch takes none; write a function that "
                          "stores it into an output, and name its file with --with")
        self.values = [self.value(p) for p in self.parameters]
        missing = [o for o in task.outputs if o not in self.takes]
        if missing:
            raise Refused(f"{where}: error: no parameter takes the output {missing[0]}; --args PARAMETER={missing[0]}")

    def refuse_names(self, names):
        if names:
            raise Refused(f"--args: {self.where} has no parameter {min(names)}; it has {', '.join(p.name for p in self.parameters)}")

    def refuse(self, p, why):
        raise Refused(f"{self.where}: error: parameter {p.name} is '{p.type}', and {why}")

    def value(self, p):
        said = self.said.get(p.name)
        if said is None:
            said = next((n for n in self.task.names() if n == p.name), None) or next(
                (n for n in self.task.names() if n.lower() == p.name.lower()), None)
        if said is None:
            self.refuse(p, f"the task has nothing of this name; --args {p.name}=VALUE, one of {', '.join(self.task.names())} "
                           "or an expression of axes")
        if p.function:
            self.refuse(p, "no function can be given")
        return self.pointed(p, said) if p.pointer else self.passed(p, said)

    def pointed(self, p, said):
        if said in NULL:
            return "i64(0)"
        if said not in self.task.tensors or self.task.scalar(said):
            self.refuse(p, f"{said} is no tensor of the task; it has {', '.join(n for n in self.task.tensors if not self.task.scalar(n))}")
        fits = [d for d in sorted(self.task.dtypes[said]) if p.element in ELEMENT.get(d, ()) or p.element == "void"]
        if not fits:
            self.refuse(p, f"{said} is {' or '.join(sorted(self.task.dtypes[said]))}")
        if said in self.task.outputs and p.const:
            self.refuse(p, f"{said} is an output, which the function does not write")
        self.takes[said] = p, fits
        return said

    def passed(self, p, said):
        number = re.fullmatch(r"-?[0-9.]+(e-?\d+)?", said)
        if p.element in ("float", "double"):
            if self.task.scalar(said) and p.element in set().union(*(ELEMENT.get(d, ()) for d in self.task.dtypes[said])):
                return said
            if not number and said not in self.task.axes and not self.task.scalar(said):
                self.refuse(p, f"{said} is no number, axis or scalar")
            return f"{'f32' if p.element == 'float' else 'f64'}({said})"
        if p.element in WHOLE or (not p.element and p.bytes == 4 and p.spelled.startswith("enum")):
            return said if not self.is_tensor(said) else self.refuse(p, f"{said} is a tensor")
        if p.element in ("long", "ulong"):
            return f"i64({said})" if not self.is_tensor(said) else self.refuse(p, f"{said} is a tensor")
        return self.refuse(p, "such a value cannot be passed by a launch")

    def is_tensor(self, name):
        return name in self.task.tensors and not self.task.scalar(name)

    def checks(self):
        """Lines that keep a shape of another type away, where the task has several."""
        for name, (_, fits) in self.takes.items():
            if len(fits) < len(self.task.dtypes[name]):
                wrong = " && ".join(f"KL_DTYPE_{name} != {MACRO[d]}" for d in fits)
                yield f'#if {wrong}\n#error "this kernel takes {name} as {" or ".join(fits)}"\n#endif\n'

    def line(self, name, clauses=""):
        return f"launch {name} {clauses}{' ' * bool(clauses)}args({', '.join(self.values)})"
