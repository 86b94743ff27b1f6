"""observe.py - a problem that is nothing but code: what it takes and gives is seen by running it at small sizes.

The text of such a problem defines `make_inputs(axes_and_scalars, device)`, `run`, and two tables that are filled
here: FIXED, the parameters that stay, and FROM, where `run` finds the others, {name: (input, dimension)}.
SPDX-License-Identifier: Apache-2.0
"""
from problem import FLOATS, Problem, Refused, Script, dtype_name, first_line, holds_wide, is_dull, product
from shapes import MOST_ELEMS, Search, evaluated, expression, key_of, on_this

BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int64": 8, "int32": 4,
         "int16": 2, "int8": 1, "uint8": 1, "bool": 1}
CPU_ELEMS = 1 << 20    # of the shape that is timed on a CPU where the real one is too large for it


class Seen:
    def __init__(self, made, out):
        self.inputs, self.scalars = {}, {}
        for name, value in made.items():
            if hasattr(value, "shape"):
                self.inputs[name] = (dtype_name(value), tuple(value.shape))
            else:
                self.scalars[name] = value
        self.outputs = [(dtype_name(v), tuple(v.shape)) for v in out]

    def kinds(self):
        return ([(n, d, len(s)) for n, (d, s) in self.inputs.items()], sorted(self.scalars), [(d, len(s)) for d, s in self.outputs])


class Observer:
    """`text(fixed, where)` is the problem's reference; `real` a list of (label, parameters, hidden)."""

    def __init__(self, name, dialect, text, real, free):
        self.p, self.text, self.real, self.free = Problem(name, dialect), text, real, list(free)
        self.script = Script(text({}, {}))
        self.first_error, self.dull = "", set()

    def attempt(self, params):
        torch = self.script.torch
        self.script.space["FIXED"] = params
        try:
            made = self.script.make(params)
            if sum(v.numel() for v in made.values() if hasattr(v, "numel")) > MOST_ELEMS:
                raise Refused("no small shape was found: its smallest takes more than %d elements" % MOST_ELEMS)
            out = self.script.run(made)
        except Exception as error:
            self.first_error = self.first_error or first_line(error)
            return None
        for kind, (_, shape) in [(0, s) for s in Seen(made, out).inputs.values()] + [(1, s) for s in Seen(made, out).outputs]:
            if 0 in shape:
                return None
        if is_dull(torch, made, out):
            self.dull.add(key_of(params))
        return Seen(made, out)

    # -- which parameters may change

    def visible(self, tiny, probes):
        """Those that some input's size is equal to, at both values: where `run` finds them."""
        where, base = {}, self.search.look(tiny)
        for name in self.free:
            value = probes.get(name)
            other = self.search.look({**tiny, name: value}) if value else base
            for tensor, (_, shape) in base.inputs.items():
                for d, size in enumerate(shape):
                    if name not in where and size == tiny[name] and other.inputs[tensor][1][d] == (value or tiny[name]):
                        where[name] = (tensor, d)
        return where

    def settle(self, needs_where):
        """Tiny and probes, over the parameters that may change."""
        real = self.real[-1][1]
        for _ in range(3):
            self.search = Search(self.attempt, self.dull)
            tiny = self.search.tiny(real, self.free)
            if not tiny:
                raise Refused(self.first_error or "its reference does not run at any size that was tried")
            kinds = self.search.look(tiny).kinds()
            probes = self.search.probes(tiny, real, self.free)
            probes = {n: v for n, v in probes.items() if self.search.look({**tiny, n: v}).kinds() == kinds}
            where = self.visible(tiny, probes)
            hiding = [n for n in self.free if n not in where]
            if not needs_where or not hiding:
                break
            self.free = [n for n in self.free if n in where]
        self.free = [n for n in self.free if n in probes or any(r[n] != tiny[n] for _, r, _ in self.real)]
        return tiny, probes, {n: w for n, w in where.items() if n in self.free}

    # -- what was seen becomes tensors over axes

    def dims(self, tensor, shapes, points):
        for d, values in enumerate(zip(*shapes)):
            text = expression(values, points, self.free)
            if text is None:
                name = f"{tensor}_d{d}"
                self.p.axes[name] = {"type": "var"}
                self.measured[name] = values
                yield name
            elif text.isdigit():
                yield int(text)
            elif text in self.free:
                yield text
            else:
                name = next((n for n, a in self.p.axes.items() if a.get("expression") == text), f"{tensor}_d{d}")
                self.p.axes[name] = {"type": "expr", "expression": text}
                yield name

    def describe(self, points, seen):
        p, first = self.p, seen[0]
        p.axes = {n: {"type": "var"} for n in self.free}
        self.measured = {}
        for name in first.inputs:
            p.inputs[name] = {"shape": list(self.dims(name, [s.inputs[name][1] for s in seen], points)), "dtype": first.inputs[name][0]}
        for name, value in first.scalars.items():
            p.inputs[name] = {"shape": None, "dtype": "bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"}
        for i, (name, (dtype, _)) in enumerate(zip(self.script.output_names(len(first.outputs), p.inputs), first.outputs)):
            p.outputs[name] = {"shape": list(self.dims(name, [s.outputs[i][1] for s in seen], points)), "dtype": dtype}
        for t in (*p.inputs.values(), *p.outputs.values()):
            if t["dtype"] not in BYTES:
                raise Refused(f"a tensor of {t['dtype']}: there is no such data type here")

    def size(self, t, params):
        values = dict(params)
        for name, axis in self.p.axes.items():
            if axis["type"] == "expr":
                values[name] = evaluated(axis["expression"], values)
        return product(values.get(d, 0) if isinstance(d, str) else d for d in t["shape"] or [])

    def bytes_of(self, params):
        return sum(self.size(t, params) * BYTES[t["dtype"]] for t in (*self.p.inputs.values(), *self.p.outputs.values()))

    def add(self, params, label, hidden=False, on=None):
        seen = self.search.seen.get(key_of(params))
        axes = {n: params[n] for n in self.free}
        if self.measured and not seen:
            self.p.notes.append(f"{label} left out: the size of {', '.join(self.measured)} there is not known")
            return
        for name in self.measured:
            tensor, d = name.rsplit("_d", 1)
            shape = seen.inputs[tensor][1] if tensor in seen.inputs else seen.outputs[list(self.p.outputs).index(tensor)][1]
            axes[name] = shape[int(d)]
        scalars = seen.scalars if seen else self.scalars_at(params)
        inputs = {n: {"type": "scalar", "value": scalars[n]} if t["shape"] is None else {"type": "random"} for n, t in self.p.inputs.items()}
        self.p.add(axes, label, inputs=inputs, hidden=hidden, on=on)

    def scalars_at(self, params):
        first = self.search.look(self.tiny).scalars
        return {n: params[n] if n in params and isinstance(v, int) else v for n, v in first.items()}

    def add_all(self, tiny, hidden):
        if key_of(tiny) in self.dull:
            self.p.notes.append("at its small shapes a trivial answer is right, so its check is weak")
        self.add(tiny, "tiny")
        for i, params in enumerate(hidden):
            self.add(params, f"odd-{i + 1}", hidden=True)
        large = False
        for label, params, is_hidden in self.real:
            on = on_this(self.bytes_of(params))
            large |= on == "gpu" and not is_hidden
            if not (is_hidden and on):
                self.add(params, label, hidden=is_hidden, on=on)
        if large:
            self.add(self.for_cpu(tiny), "cpu", on="cpu")

    def for_cpu(self, tiny):
        best, top = tiny, self.real[-1][1]
        for _ in range(12):
            bigger = {n: min(2 * v, top[n]) if n in self.free else v for n, v in best.items()}
            if bigger == best or self.bytes_of(bigger) > 4 * CPU_ELEMS or not self.search.look(bigger):
                break
            best = bigger
        return best

    def values_of(self, point):
        values = dict(point)
        for name, axis in self.p.axes.items():
            if axis["type"] == "expr":
                values[name] = evaluated(axis["expression"], values)
        return values

    # -- is it a function of its inputs?

    def checks(self, tiny, made):
        torch, script = self.script.torch, self.script
        runs = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            script.space["SEED"] = seed
            script.space.get("forget", lambda: None)()
            runs.append(script.run(made))
        script.space["SEED"] = 0
        for a, b in zip(*runs):
            if not torch.equal(a.nan_to_num() if a.is_floating_point() else a, b.nan_to_num() if b.is_floating_point() else b):
                raise Refused("its reference is no function of its inputs: it draws random numbers itself (dropout, or tensors that are no parameters)")
        again = script.make(tiny, seed=2)
        for name, value in made.items():
            if not hasattr(value, "shape") and again[name] != value:
                raise Refused(f"the number `{name}` among its inputs is random")

    def problem(self, description="", needs_where=False):
        p = self.p
        tiny, probes, where = self.settle(needs_where)
        self.tiny = tiny
        for _, params, _ in sorted(self.real, key=lambda r: sum(r[1].values()))[:4]:
            if product(params.values()) <= MOST_ELEMS:
                self.search.look(params)
        hidden = self.search.hidden(tiny, probes)
        points, seen = zip(*[(dict(k), s) for k, s in self.search.seen.items()
                             if s and s.kinds() == self.search.look(tiny).kinds()])
        order = sorted(range(len(points)), key=lambda i: points[i] != tiny)
        points, seen = [points[i] for i in order], [seen[i] for i in order]
        self.describe(points, seen)
        self.script.space["FIXED"] = tiny
        made = self.script.make(tiny)
        self.checks(tiny, made)
        p.description, p.entry = description, "make_inputs"
        p.reference = self.text({n: v for n, v in self.real[-1][1].items() if n not in self.free}, where)
        tensors = [n for n, t in p.inputs.items() if t["shape"] is not None]
        p.section["inputs"] = {n: {"dist": "custom"} for n in tensors}
        self.add_all(tiny, [h for h in hidden if self.search.look(h).kinds() == self.search.look(tiny).kinds()])
        return self.with_oracle(p, tiny, probes)

    def with_oracle(self, p, tiny, probes):
        script = Script(p.reference)
        script.names = self.script.names
        made = script.make({n: tiny[n] for n in self.free})
        why = holds_wide(script, made, [t["dtype"] for t in p.outputs.values()])
        if not why and any(t["dtype"] in FLOATS for t in p.outputs.values()):
            p.section["oracle"] = "float64"
        elif why:
            p.notes.append(f"the reference stays in its own precision: {why}")
        small = [w["axes"] for w in p.workloads if w["klineage"].get("on") != "gpu" and w["klineage"]["label"] not in ("real", "cpu")][:8]
        others = {} if self.measured else {n: v for n, v in probes.items() if n in self.free}
        p.script, p.cases = script, self.search.for_draft(small[0], small[1:], others)
        p.make, p.values_of = lambda point: script.make({n: point[n] for n in self.free}), self.values_of
        return p
