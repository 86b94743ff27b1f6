"""draft.py - the plainest kernel in C, written from a trace: a loop nest per operator that cannot be a formula in another's.

Elementwise operators and views are formulas; reductions, products and windows are loops into a buffer.  Nothing is
optimized: it is where a search begins, and whose rounding is the unit of error.  It is compiled and compared with
the reference before it is kept (draft_check.py), so an operator that is read wrongly costs a draft and no verdict.
SPDX-License-Identifier: Apache-2.0
"""
import re

from draft_elementwise import BINARY, SAME, UNARY, Elementwise
from draft_formula import C_TYPES, Value, atom, c_text, kind_of, linear, number, times
from draft_reductions import Reductions
from draft_resampling import Resampling
from trace import NoDraft, Recording, Ref, Several, Text
from draft_views import Views
from draft_windows import Windows

MOST_TEXT = 600    # of a formula before it becomes a buffer
HELPERS = {
    "load_bf16": "static float load_bf16(unsigned short h)\n{\n    const union { uint32_t u; float f; } v = {(uint32_t)h << 16};\n    return v.f;\n}\n",
    "store_bf16": "static unsigned short store_bf16(float x)\n{\n    const union { float f; uint32_t u; } v = {x};\n"
                  "    return (unsigned short)(x != x ? 0x7FC0 : (v.u + 0x7FFF + (v.u >> 16 & 1)) >> 16);\n}\n",
    "sigmoid": "static real sigmoid(real x)\n{\n    return 1 / (1 + exp(-x));\n}\n",
    "softplus": "static real softplus(real x)\n{\n    return x > 20 ? x : log1p(exp(x));\n}\n",
    "mod": "static int64_t mod(int64_t a, int64_t b)\n{\n    return (a % b + b) % b;\n}\n",
}


class Draft(Elementwise, Views, Reductions, Windows, Resampling):
    def __init__(self, trace, inputs, outputs, real):
        self.trace, self.real = trace, real
        self.lines, self.sizes, self.values, self.n, self.depth = [], {"real": [], "int64_t": []}, {}, 0, 1
        self.inputs, self.outputs = inputs, outputs
        for name, t in trace.inputs.items():
            if isinstance(t, Ref):
                self.values[t.number] = self.input(name, t)

    def input(self, name, t):
        shape = [c_text(s) for s in t.shape]
        if t.dtype not in C_TYPES:
            raise NoDraft(f"a tensor of {t.dtype}")
        load = "load_bf16({})" if t.dtype == "bfloat16" else f"({'real' if kind_of(t.dtype) == 'real' else 'int64_t'}){{}}"
        return Value(shape, kind_of(t.dtype), lambda i: load.format(f"t_{name}[{linear(i, shape)}]"), t.dtype)

    # -- what is written

    def put(self, text):
        self.lines.append("    " * self.depth + text)

    def loops(self, shape, prefix):
        index = []
        for d, size in enumerate(shape):
            if size == "1":
                index.append("0")
                continue
            self.put(f"for (int64_t {prefix}{d} = 0; {prefix}{d} < {size}; {prefix}{d}++) {{")
            self.depth += 1
            index.append(f"{prefix}{d}")
        if set(index) <= {"0"}:    # a block all the same: what is declared in it is its own
            self.put("{")
            self.depth += 1
        return index

    def end(self, index):
        for _ in [i for i in index if i != "0"] or [None]:
            self.depth -= 1
            self.put("}")

    def buffer(self, shape, kind, dtype):
        name = f"b{self.n}"
        self.n += 1
        self.sizes[kind].append((name, times(shape)))
        return name, Value(shape, kind, lambda i: f"{name}[{linear(i, shape)}]", dtype)

    def stored(self, value):
        """The same, written down: what is read often, or has become long."""
        if getattr(value, "is_stored", False):
            return value
        name, result = self.buffer(value.shape, value.kind, value.dtype)
        index = self.loops(value.shape, "i")
        self.put(f"{name}[{linear(index, value.shape)}] = {value.at(index)};")
        self.end(index)
        result.is_stored = True
        return result

    def formula(self, shape, kind, at, dtype):
        value = Value(shape, kind, at, dtype)
        probe = at([f"i{d}" for d in range(len(shape))])
        return self.stored(value) if len(probe) > MOST_TEXT else value

    # -- reading arguments

    def of(self, x):
        if isinstance(x, Ref):
            if x.number not in self.values:
                raise NoDraft("it reads what was not followed")
            return self.values[x.number]
        if isinstance(x, (bool, int, float, Text)):
            text = c_text(x) if isinstance(x, Text) else number(x)
            return Value([], "real" if isinstance(x, float) or isinstance(x, Text) and "/ " in x else "int64_t", lambda i: f"({text})" if text[0] == "-" else text, "")
        raise NoDraft("an argument that is no tensor and no number")

    def spread(self, value, shape):
        """A view of another shape by broadcasting."""
        shift = len(shape) - len(value.shape)
        def at(index):
            return value.at(["0" if s == "1" else index[d + shift] for d, s in enumerate(value.shape)])
        return at

    def each(self, text, operands, out, kind=None):
        shape = self.shape(out)
        values = [self.of(o) for o in operands]
        readers = [self.spread(v, shape) for v in values]
        names = "xyzw"
        # an operand that a formula names twice is read twice: it is written down first where it is long
        for i, v in enumerate(values):
            probe = readers[i]([f"i{d}" for d in range(len(shape))])
            if text.count("{" + names[i] + "}") > 1 and len(probe) > 60:
                values[i] = self.stored(v)
                readers[i] = self.spread(values[i], shape)
        return self.formula(shape, kind or kind_of(out.dtype), lambda i: text.format(**{n: r(i) for n, r in zip(names, readers)}), out.dtype)

    def shape(self, out):
        return [c_text(s) for s in out.shape]

    # -- operators

    def run(self):
        for name, names, args, kwargs, out in self.trace.ops:
            given = {**dict(zip(names, args)), **kwargs}
            outs = out if isinstance(out, list) else [out]
            results = self.operator(name, given, outs)
            for ref, value in zip(outs, results):
                if isinstance(ref, Ref) and value is not None:
                    self.values[ref.number] = value
        return self

    def operator(self, name, given, outs):
        method = getattr(self, "op_" + name.lstrip("_"), None)
        first = next(iter(given.values()), None)
        if name in UNARY:
            return [self.each(UNARY[name], [first], outs[0])]
        if name in BINARY:
            a, b = list(given.values())[:2]
            return [self.each(BINARY[name], [a, b], outs[0])]
        if name in SAME:
            v = self.of(first)
            return [Value(v.shape, v.kind, v.at, v.dtype)]
        if method is None:
            raise NoDraft(f"its operator `{name}` has no plain form here")
        result = method(given, outs)
        return result if isinstance(result, list) else [result]

    # -- the file

    def store(self, outputs):
        for (name, t), ref in zip(outputs.items(), self.trace.outputs):
            value = self.of(ref)
            if isinstance(ref, Ref) and ref.dtype not in C_TYPES or t["dtype"] not in C_TYPES:
                raise NoDraft(f"an output of {t['dtype']}")
            shape = value.shape
            index = self.loops(shape, "i")
            text = value.at(index)
            self.put(f"t_{name}[{linear(index, shape)}] = " + (f"store_bf16({text})" if t["dtype"] == "bfloat16" else f"({C_TYPES[t['dtype']]})({text})") + ";")
            self.end(index)


def directive_size(text):
    return text.replace("A_", "")


def file_of(draft, p, axes):
    """The kernel file: directives, helpers, one function."""
    names = [*p.inputs, *p.outputs]
    tensors = {**p.inputs, **p.outputs}
    body = "\n".join(draft.lines)
    scratch, args, parameters, pointers = [], [], [], []
    for n in names:
        t = tensors[n]
        args.append(n)
        if t["shape"] is None:
            parameters.append(f"{C_TYPES[t['dtype']]} t_{n}")
        else:
            parameters.append(f"{'' if n in p.outputs else 'const '}{C_TYPES[t['dtype']]} *t_{n}")
    for kind, type_name, word in (("real", "f64" if draft.real == "double" else "f32", "work"), ("int64_t", "i64", "whole")):
        if draft.sizes[kind]:
            scratch.append(f"//! buffer kl_{word}: {type_name}[{' + '.join(directive_size(atom(s)) for _, s in draft.sizes[kind])}]")
            args.append(f"kl_{word}")
            parameters.append(f"{kind} *{word}")
            at = word
            for name, size in draft.sizes[kind]:
                pointers.append(f"    {kind} *const {name} = {at};")
                at = f"{name} + (int64_t){atom(size)}"
    used = [a for a in axes if re.search(rf"\bA_{a}\b", body + "".join(pointers))]
    args += [f"i64({a})" for a in used]
    parameters += [f"int64_t A_{a}" for a in used]
    helpers = [text for name, text in HELPERS.items() if re.search(rf"\b{name}\(", body)]
    return "\n".join([f"//! launch naive args({', '.join(args)})", *scratch, f"/* {p.name}: drafted from a trace of its reference, operator by operator. */",
                      "#include <math.h>", "#include <stdint.h>", "", f"typedef {draft.real} real;", "", *helpers,
                      f"void naive({', '.join(parameters)})", "{", *pointers, body, "}", ""]), args, used


def drafted(p, make, axes):
    """naive.c, from traces at the sizes of p.cases."""
    torch, names = p.script.torch, [n for n, a in axes.items()]
    points = [c for c in p.cases if all(c[n] > 1 for n in c if p.axes[n]["type"] == "var")][:6] or p.cases[:3]
    if len(points) == 1 and any(w["axes"][n] != points[0].get(n) for w in p.workloads for n in w["axes"]):
        raise NoDraft("its reference was seen to run at one size only, so which numbers in it are sizes is not known")
    recordings = []
    for point in points:
        inputs, run = make(point), p.script.space["run"]
        try:
            recordings.append(Recording(torch, inputs).run(lambda: p.script.listed(p.script.helpers.around(run, (), inputs))))
        except RuntimeError as error:
            if "not implemented for" not in str(error):
                raise
            recordings.append(Recording(torch, inputs).run(lambda: p.script.listed(p.script.helpers.widened(run)(**inputs))))
    trace = Several(recordings, points, [n for n in names if len({c.get(n) for c in points}) > 1 or len(points) == 1])
    dtypes = [t["dtype"] for t in (*p.inputs.values(), *p.outputs.values())]
    draft = Draft(trace, p.inputs, p.outputs, "double" if "float64" in dtypes else "float").run()
    draft.store(p.outputs)
    return file_of(draft, p, names)
