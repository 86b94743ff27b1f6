"""declared.py - a problem whose axes and tensors are declared: what is tried is which sizes and which index values its reference takes.

SPDX-License-Identifier: Apache-2.0
"""
import ast
import itertools
import math
import re

from problem import FLOATS, Problem, Refused, Script, dtype_name, first_line, holds_wide, is_dull, product, torch_or_none
from shapes import MOST_ELEMS, TINIER, Search, evaluated, expression, key_of, on_this

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int64": 8, "int32": 4,
         "int16": 2, "int8": 1, "uint8": 1, "bool": 1}
MOST_GUESSES = 48
MOST_FIXED = 1 << 28    # elements at the smallest shape
SEQUENCE = re.compile(r"indptr|offset|cu_seq|cu_len|start_loc|row_ptr|splits$")
LENGTHS = re.compile(r"len|count|sizes$")
INDEX = re.compile(r"ind(ices|ex)|idx|ids?$|table|page|slot|label|target|token|block|expert|map$")
COUNTED = re.compile(r"total|num|n_|pages|vocab|expert|class|token|nnz|size|indices|seq", re.I)
OWNER = ("page", "vocab", "expert", "class", "slot", "block", "row")


def default_size(name):
    if re.search(r"batch|num_seq|requests", name):
        return 8
    if SEQUENCE.search(name):    # of a table of cuts
        return 9
    return 1024 if re.search(r"token|seq|len|^[mnk]$|page|rows|total", name, re.I) else 256


def default_scalar(name, dtype, axes):
    head = next((a.get("value") for n, a in axes.items() if "head_dim" in n and a.get("value")), 64)
    if dtype == "bool":
        return False
    if dtype.startswith(("int", "uint")):
        return 1
    return 1 / math.sqrt(head) if "scale" in name and "sm" in name else 1e-6 if "eps" in name else 1.0

FEW_ELEMS, MORE_DRAWS = 16, 8


class Declared:
    """`given` is a definition; its outputs may be missing, then they are what the reference returns."""

    def __init__(self, given, dialect):
        self.p = p = Problem(given["name"], dialect)
        p.description, p.op_type = given.get("description") or "", given.get("op_type") or ""
        p.axes, p.inputs, p.outputs = dict(given["axes"]), dict(given["inputs"]), dict(given.get("outputs") or {})
        p.reference, p.tags = given.get("reference") or "", [t for t in given.get("tags") or [] if isinstance(t, str)]
        p.entry, p.constraints = given.get("custom_inputs_entrypoint"), [c for c in given.get("constraints") or [] if isinstance(c, str)]
        p.section = dict(given.get("klineage") or {})
        for name, t in (*p.inputs.items(), *p.outputs.items()):
            if t.get("dtype") not in BYTES:
                raise Refused(f"`{name}` is {t.get('dtype')}: there is no such data type here")
        self.var = [n for n, a in p.axes.items() if a.get("type") == "var"]
        self.first_error, self.too_large, self.dists, self.scalars, self.dull = "", False, {}, {}, set()
        self.script = self.open_script()
        self.derived, self.totals = self.read_constraints()
        self.free = [n for n in self.var if n not in self.derived]
        least = self.whole({n: 2 for n in self.free}) or {}
        fixed = sum(self.size(t, least) for t in p.inputs.values()) if least else 0
        if fixed > MOST_FIXED:
            raise Refused(f"its constant sizes alone take {fixed} elements: no small shape is there to try")
        self.limit = max(MOST_ELEMS, 4 * fixed)

    def open_script(self):
        if not torch_or_none() or not self.p.reference:
            return None
        try:
            script = Script(self.p.reference)
            script.names = list(self.p.outputs)
            return script
        except Exception as error:
            self.p.notes.append(f"the reference does not load here: {first_line(error)}")
            return None

    # -- what the constraints say

    def read_constraints(self):
        """({axis: expression}, {tensor: axis}) of lines like `len_indptr == batch + 1` and `total == indptr[-1].item()`."""
        derived, totals = {}, {}
        for text in self.p.constraints:
            left, equals, right = (part.strip() for part in text.partition("=="))
            for a, b in ((left, right), (right, left)):
                end = re.fullmatch(r"(\w+)\[-1\](?:\.item\(\))?", b)
                if a in self.var and end and end[1] in self.p.inputs:
                    totals[end[1]] = a
                elif equals and a in self.var and a not in derived and not end and self.is_over_axes(b, derived):
                    derived[a] = b
                    break
        return derived, totals

    def is_over_axes(self, text, derived):
        try:
            names = {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
        except SyntaxError:
            return False
        return bool(names) and names <= set(self.p.axes) - set(derived)

    def whole(self, params):
        """Every axis at these parameters, or None where they break a constraint."""
        values = {n: a["value"] for n, a in self.p.axes.items() if a.get("type") == "const"}
        values.update({n: v for n, v in params.items()})
        for name, text in self.derived.items():
            values[name] = evaluated(text, values)
        for name, axis in self.p.axes.items():
            if axis.get("type") == "expr":
                values[name] = evaluated(axis["expression"], values)
        if any(not isinstance(v, int) or v < 1 for v in values.values()):
            return None
        if any(evaluated(c, values) is False for c in self.p.constraints) or not self.can_be_cut(values):
            return None
        return values

    def can_be_cut(self, values):
        """A table of cuts is drawn so that no part is empty."""
        offsets = {n: d["total"] for n, d in self.dists.items() if d["dist"] == "offsets"} | self.totals
        cuts = {n: self.size(self.p.inputs[n], values) - 1 for n in offsets}
        return all(values[total] >= cuts[n] for n, total in offsets.items())

    def size(self, t, values):
        return product(values[d] if isinstance(d, str) and d in values else int(d) for d in t["shape"] or [])

    def bytes_of(self, values):
        return sum(self.size(t, values) * BYTES[t["dtype"]] for t in (*self.p.inputs.values(), *self.p.outputs.values()))

    # -- inputs

    def guesses(self, name, t):
        """How integers may be drawn, the likeliest first."""
        own = [d for d in t["shape"] or [] if isinstance(d, str)]
        counted = [n for n in self.p.axes if n not in own and COUNTED.search(n)] + [n for n in self.p.axes if n not in own and not COUNTED.search(n)]
        counts_things = not LENGTHS.search(name)
        counted.sort(key=lambda n: (not any(w in n and w in name for w in OWNER), ("size" in n or "dim" in n or "head" in n) == counts_things))
        if t["dtype"].startswith(("float", "bfloat")):
            return [{"dist": "uniform", "low": 0, "high": 1}]
        if t["dtype"] == "bool":
            return [{"dist": "bool"}]
        if SEQUENCE.search(name) and len(t["shape"] or []) == 1:
            totals = [self.totals[name]] if name in self.totals else []
            return [{"dist": "offsets", "total": n} for n in totals + [c for c in counted if c not in totals]][:6]
        if LENGTHS.search(name):
            return [{"dist": "uniform_int", "low": 1, "high": f"{n} + 1"} for n in counted][:5] + [{"dist": "uniform_int", "low": 1, "high": 2}]
        if INDEX.search(name):
            return [{"dist": "uniform_int", "low": 0, "high": n} for n in counted][:5] + [{"dist": "uniform_int", "low": 0, "high": 2}]
        return [None, {"dist": "uniform_int", "low": 0, "high": 2}] + [{"dist": "uniform_int", "low": 0, "high": n} for n in counted[:3]]

    def is_open(self, name):
        t = self.p.inputs[name]
        is_float = t["dtype"].startswith(("float", "bfloat"))
        said = name in (self.p.section.get("inputs") or {})
        return t["shape"] is not None and not said and (not is_float or bool(re.search("prob", name)))

    def draw(self, name, values, seed):
        torch, t = self.script.torch, self.p.inputs[name]
        shape = [values[d] if isinstance(d, str) and d in values else int(d) for d in t["shape"]]
        dtype, dist = getattr(torch, t["dtype"]), self.dists.get(name)
        make = torch.Generator().manual_seed(seed)
        if dist and dist["dist"] == "uniform":
            return torch.rand(shape, generator=make).to(dtype)
        if t["dtype"].startswith(("float", "bfloat")):
            return torch.randn(shape, generator=make).to(dtype)
        if dist and dist["dist"] == "offsets":
            n, total = shape[0] - 1, values[dist["total"]]
            if n < 1 or total < n:
                raise ValueError("fewer elements than cuts")
            return torch.tensor([total * i // n for i in range(n + 1)], dtype=dtype)
        low = dist.get("low", 0) if dist else 0
        high = 2 if not dist or dist["dist"] == "bool" else evaluated(str(dist["high"]), values)
        return torch.randint(low, max(low + 1, min(high, 127) if BYTES[t["dtype"]] == 1 else high), shape, generator=make).to(dtype)

    def inputs(self, values, seed=1):
        if self.p.entry:
            return self.script.helpers.generated(self.script.space[self.p.entry])(self.script.torch.tensor([seed]), **values)
        return {n: self.draw(n, values, seed) if t["shape"] is not None else self.scalar(n) for n, t in self.p.inputs.items()}

    def scalar(self, name):
        if name not in self.scalars:
            self.scalars[name] = default_scalar(name, self.p.inputs[name]["dtype"], self.p.axes)
        return self.scalars[name]

    def attempt(self, params):
        values = self.whole(params)
        if not values:
            return None
        if sum(self.size(t, values) for t in self.p.inputs.values()) > self.limit:
            self.too_large = True
            return None
        if not self.script:
            return values
        try:
            made = self.inputs(values)
            out = self.script.run(made)
            if self.p.outputs and len(out) != len(self.p.outputs):
                raise ValueError(f"it returns {len(out)} values, the definition has {len(self.p.outputs)} outputs")
            for (name, t), got in zip(self.p.outputs.items(), out):
                if list(got.shape) != [values[d] if isinstance(d, str) and d in values else int(d) for d in t["shape"] or []]:
                    raise ValueError(f"`{name}` has shape {list(got.shape)}, not {t['shape']}")
        except Exception as error:
            self.first_error = self.first_error or first_line(error)
            return None
        if is_dull(self.script.torch, made, out) or self.is_dull_elsewhere(values, out):
            self.dull.add(key_of(params))
        return [(dtype_name(v), tuple(v.shape)) for v in out]

    def is_dull_elsewhere(self, values, out):
        """Of a few elements all may be zeros on the next draw."""
        draws = range(2, 2 + MORE_DRAWS) if min(v.numel() for v in out) < FEW_ELEMS else ()
        return any(is_dull(self.script.torch, made, self.script.run(made)) for made in (self.inputs(values, seed) for seed in draws))

    # -- shapes

    def search_with_guesses(self, real):
        """Sizes first, and at the smallest the first guess of index values at which the reference runs."""
        open_inputs = [n for n in self.p.inputs if self.is_open(n)] if self.script and not self.p.entry else []
        choices = [self.guesses(n, self.p.inputs[n]) or [None] for n in open_inputs]
        for combination in itertools.islice(sorted(itertools.product(*(range(len(c)) for c in choices)), key=sum), MOST_GUESSES):
            self.dists = {n: c[i] for n, c, i in zip(open_inputs, choices, combination) if c[i]}
            search = Search(self.attempt, self.dull)
            tiny = search.tiny(real, self.free) if not combination or sum(combination) == 0 else next(
                (t for t in self.tinies(real) if search.look(t)), None)
            if tiny:
                return search, tiny
        if not self.script:
            return search, None
        raise Refused(f"its reference runs at no size that was tried: {self.first_error or self.why_none()}")

    def why_none(self):
        return f"they keep its constraints, but take more than {self.limit} elements" if self.too_large else "every one breaks a constraint"

    def tinies(self, real):
        for level in (16, 64, *TINIER):
            yield {n: min(v, level) for n, v in real.items()}

    def describe_outputs(self, points, seen):
        self.p.outputs = {}
        for i, (name, (dtype, shape)) in enumerate(zip(self.script.output_names(len(seen[0]), self.p.inputs), seen[0])):
            dims = []
            for d in range(len(shape)):
                text = expression([s[i][1][d] for s in seen], points, self.free)
                if text is None:
                    raise Refused(f"size {d} of output {i} depends on more than sizes of inputs")
                if not text.isdigit() and text not in self.p.axes:
                    self.p.axes[f"{name}_d{d}"] = {"type": "expr", "expression": text}
                    text = f"{name}_d{d}"
                dims.append(int(text) if text.isdigit() else text)
            self.p.outputs[name] = {"shape": dims, "dtype": dtype}
            if dtype not in BYTES:
                raise Refused(f"output {i} is {dtype}: there is no such data type here")

    def line_inputs(self):
        if self.p.entry:
            return {n: {"type": "custom"} for n in self.p.inputs}
        return {n: {"type": "random"} if t["shape"] is not None else {"type": "scalar", "value": self.scalar(n)} for n, t in self.p.inputs.items()}

    def add(self, params, label, **how):
        values = self.whole(params)
        self.p.add({n: values[n] for n in self.var}, label, inputs=self.line_inputs(), **how)

    def problem(self, real, lines):
        """`lines` are workloads of others, already good; where there are none, `real` is one."""
        p = self.p
        search, tiny = self.search_with_guesses(real)
        if not tiny:
            raise Refused("no sizes were found that keep its constraints")
        probes = search.probes(tiny, real, self.free)
        hidden = search.hidden(tiny, probes)
        if not p.outputs:
            good = [(dict(k), s) for k, s in search.seen.items() if s and len(s) == len(search.look(tiny))]
            self.describe_outputs(*zip(*sorted(good, key=lambda g: g[0] != tiny)))
        if not lines and not self.whole(real):
            p.notes.append("the real shape breaks a constraint: the largest that was tried is it")
            real = hidden[0] if hidden else tiny
        self.add(tiny, "tiny")
        for i, params in enumerate(hidden):
            self.add(params, f"odd-{i + 1}", hidden=True)
        for line in lines:
            p.workloads.append({**line, "klineage": dict(line.get("klineage") or {})})
        if not lines:
            self.add(real, "real", on=on_this(self.bytes_of(self.whole(real))))
        smallest = min((self.bytes_of({**self.whole(tiny), **w["axes"]}) for w in p.workloads[1 + len(hidden):]), default=0)
        if on_this(smallest):
            self.add(self.for_cpu(search, tiny, real), "cpu", on="cpu")
        if self.dists:
            p.section["inputs"] = {**(p.section.get("inputs") or {}), **self.dists}
            p.notes.append("values are guessed from names: " + ", ".join(f"{n} {d['dist']}" for n, d in self.dists.items()))
        return self.with_oracle(tiny, search.for_draft(tiny, hidden, probes))

    def for_cpu(self, search, tiny, real):
        best = tiny
        for _ in range(10):
            bigger = {n: min(2 * v, max(real[n], v)) for n, v in best.items()}
            if bigger == best or self.bytes_of(self.whole(bigger) or {**self.whole(best)}) > 16 << 20 or not search.look(bigger):
                return best
            best = bigger
        return best

    def with_oracle(self, tiny, cases):
        p = self.p
        if not self.script:
            p.notes.append("torch is not here: the reference was not run, and no naive kernel could be drafted")
            return p
        made = self.inputs(self.whole(tiny))
        outs = []
        for seed in (1, 2):
            self.script.torch.manual_seed(seed)
            outs.append([v.double().nan_to_num() for v in self.script.run(made)])
        if not all(self.script.torch.equal(a, b) for a, b in zip(*outs)):
            raise Refused("its reference is no function of its inputs: it draws random numbers itself")
        why = holds_wide(self.script, made, [t["dtype"] for t in p.outputs.values()])
        if why:
            p.notes.append(f"the reference stays in its own precision: {why}")
        elif any(t["dtype"] in FLOATS for t in p.outputs.values()):
            p.section["oracle"] = "float64"
        p.script, p.cases = self.script, [self.whole(x) for x in cases]
        p.make, p.values_of = self.inputs, lambda point: point
        return p
