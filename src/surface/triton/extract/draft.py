"""draft.py - directives: configurations as params, heuristics as lets, and the launch as a wrapper does it.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import json
import math
import re

from values import Config, Defined, Descriptor, Real, SHORT, Scope, Stop, Sym, Tensor, Unknown, dtype_name, is_integer, row_major, settled, text_of
from tensors import elements, transposed
from facts import DEFAULTS
from evaluator import is_constexpr, is_kernel

MOST_PARAM_VALUES = 32  # limits of a kernel file (docs/formats/kernel.md)
MOST_PARAMS = 32
MOST_WRAPPERS = 24      # that are followed


OPTIONS = {"num_warps": "warps", "num_stages": "stages", "num_ctas": "ctas", "maxnreg": "maxnreg"}
OPTION_PARAMS = {"num_warps": "WARPS", "num_stages": "STAGES", "num_ctas": "CTAS", "maxnreg": "MAXNREG"}
CLEARED = ("reset_to_zero", "restore_value")


class Choice:
    """What decorators choose at run time: configurations, heuristics, and what of them is left out."""

    def __init__(self, evaluator, module, node):
        self.e, self.module = evaluator, module
        self.configs, self.heuristics, self.left_out, self.left_to_say = [], {}, [], []
        for d in node.decorator_list:
            self.take(d)
        self.params = self.values()

    def take(self, d):
        call = d if isinstance(d, ast.Call) else None
        called = ast.unparse(call.func if call else d)
        named = {k.arg: k.value for k in call.keywords} if call else {}
        last = called.split(".")[-1]
        if last == "jit":
            return
        configs = named.get("configs") or (call.args[0] if last == "autotune" and call.args else None)
        if configs is not None:
            self.tuner(d, configs, named)
        elif last == "heuristics" and call:
            self.heuristic(d, named.get("values") or call.args[0])
        else:
            self.left_out.append(f"line {d.lineno}: decorator {called}")

    def tuner(self, d, configs, named):
        found = self.e.value(configs, Scope(self.module, {}))
        good = [c for c in found if isinstance(c, Config)] if isinstance(found, (list, tuple)) else []
        if not good:
            self.left_to_say.append(f"the configurations of line {configs.lineno}: {getattr(found, 'why', 'none was found')}")
        self.configs += good
        for name in CLEARED:
            if name in named:
                self.left_to_say.append(f"{name}={ast.unparse(named[name])} of the autotuner (line {d.lineno}): a buffer that "
                                        f"is cleared before every run is `buffer ... zero`")

    def heuristic(self, d, values):
        found = self.e.value(values, Scope(self.module, {}))
        if isinstance(found, dict):
            self.heuristics.update(found)
        else:
            self.left_to_say.append(f"the heuristics of line {d.lineno}: {getattr(found, 'why', 'not known')}")

    def values(self):
        """The values of each parameter that occur, the first configuration's first."""
        out = {}
        for config in self.configs:
            for name, value in list(config.items()) + list(config.options.items()):
                if isinstance(value, (bool, int)):
                    seen = out.setdefault(name, [])
                    if int(value) not in seen:
                        seen.append(int(value))
        given = {k: v for k, v in out.items() if k not in DEFAULTS or v != [DEFAULTS[k]]}
        return dict(list(given.items())[:MOST_PARAMS])


class Given(Unknown):
    """A scalar input of the task."""

    def __init__(self, name, dtype):
        super().__init__(f"the task's input '{name}', a number that is data")
        self.name, self.dtype = name, dtype


class Task:
    def __init__(self, path):
        with open(path) as f:
            d = json.load(f)
        self.name = d["name"]
        self.axes = {n: a.get("value") for n, a in d["axes"].items()}
        self.inputs = {n: self.tensor(n, t) for n, t in d["inputs"].items()}
        self.outputs = {n: self.tensor(n, t) for n, t in d["outputs"].items()}

    def tensor(self, name, t):
        if t["shape"] is None:
            return Given(name, t["dtype"])
        return Tensor(name, [self.size(s) for s in t["shape"]], t["dtype"])

    def size(self, s):
        value = self.axes.get(s, s) if isinstance(s, str) else s
        return Sym(s) if value is None or isinstance(value, str) else value

    def taken(self):
        return set(self.axes) | set(self.inputs) | set(self.outputs)


def plain_name(name):
    return re.sub(r"(_ptr|_pointer|_tensor)$|^(in|input)_", "", name.lower().strip("_"))


class Wrapper:
    """A function that launches the kernel, run with the task's tensors in place of its parameters."""

    def __init__(self, draft, function, swap):
        self.draft, self.function = draft, function
        e, task = draft.e, draft.task
        e.steps, e.target = 0, draft.node
        scope = Scope(function.module, {})
        self.fresh = {n: Tensor(n, t.shape, t.dtype) if isinstance(t, Tensor) else t for n, t in
                      {**task.inputs, **task.outputs}.items()}
        inputs = {n: self.fresh[n] for n in task.inputs}
        if swap and isinstance(inputs[swap], Tensor):
            inputs[swap] = transposed(inputs[swap], -2, -1)
        self.swap, self.launch, self.by_place = swap, None, []
        try:
            value = e.run(function, [], self.bound(inputs), scope)
        except (Stop, RecursionError):
            return
        hits = [l for l in scope.launches if l.kernel.node is draft.node]
        self.launch = hits[0] if hits else None
        self.others = [l for l in scope.launches if l.kernel.node is not draft.node]
        self.more, self.assumed, self.gaps = len(hits) > 1, self.by_place + [a for a in dict.fromkeys(scope.assumed) if isinstance(a, str)], []
        self.required = list(dict.fromkeys(a.text for a in scope.assumed if isinstance(a, Sym)))
        if self.launch:
            self.outputs(value)

    def bound(self, inputs):
        """Parameters by name, then by place."""
        a = self.function.node.args
        names = [p.arg for p in a.posonlyargs + a.args + a.kwonlyargs if p.arg not in ("ctx", "cls")]
        if self.function.node.name == "forward" and names[:1] == ["self"]:
            names = names[1:]
        required = len(a.posonlyargs + a.args) - len(a.defaults)
        must = {p.arg for p in (a.posonlyargs + a.args)[:required]}
        out, rest = {}, dict(inputs)
        for p in names:
            same = next((n for n in rest if plain_name(n) == plain_name(p)), None)
            if same:
                out[p] = rest.pop(same)
            elif p in self.draft.task.axes:
                out[p] = self.draft.task.size(p)
        for p in names:
            what = re.fullmatch(r"(?:output|return|store)_(\w+)", p)
            if p not in out and what and what[1] in self.draft.task.outputs:
                out[p] = True
        weight = self.draft.task.inputs.get("weight")
        if "normalized_shape" in names and isinstance(weight, Tensor):
            out["normalized_shape"] = tuple(weight.shape)
        for p in (n for n in names if n in must and n not in out):
            first = next((n for n, v in rest.items() if isinstance(v, Tensor)), None)
            if p in ("dim", "axis"):
                out[p] = -1
            elif plain_name(p) in ("out", "output", "y", "o", *map(plain_name, self.draft.task.outputs)):
                out[p] = self.fresh[list(self.draft.task.outputs)[0]]
            elif first is None and re.fullmatch(r"bias|residual|(attn_)?mask|cu_seqlens", p):
                out[p] = None
                self.by_place.append(f"{p} of {self.function.node.name} is None, since the task has none")
            elif first:
                out[p] = rest.pop(first)
                self.by_place.append(f"{p} of {self.function.node.name} is the task's {first}, by its place")
        return out

    def outputs(self, value):
        """Which tensors that the wrapper made are the task's outputs: those that it returns."""
        returned = [v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, Tensor)]
        wanted = [t for n, t in self.draft.task.outputs.items()]
        passed = {id((v.tensor if isinstance(v, Descriptor) else v).base) for v in self.launch.values + list(self.launch.named.values()) if isinstance(v, (Descriptor, Tensor))}
        for t in wanted:
            if id(self.fresh[t.name].base) in passed:
                continue
            fits = [r for r in returned if r.base.name is None and elements(r) == elements(t)]
            if not fits:
                self.gaps.append(f"which of its tensors is '{t.name}': the wrapper returns none of that size")
                continue
            fits[0].base.name, fits[0].base.output = t.name, True
            if fits[0].base.zero:
                self.gaps.append(f"'{t.name}' has to be cleared before a run, and an output is not: write it, or add into a buffer")


class Draft:
    """Directives, and what is left to fill in."""

    def __init__(self, evaluator, module, node, task):
        self.e, self.module, self.node, self.task = evaluator, module, node, task
        self.choice = Choice(evaluator, module, node)
        self.renamed = {p: f"{p}_" if task and p in task.taken() else OPTION_PARAMS.get(p, p) for p in self.choice.params}
        self.lets, self.buffers, self.gaps, self.assumed, self.required, self.args, self.clauses = {}, {}, [], [], [], [], []
        self.maps, self.overruled = {}, set()
        self.wrapper = None
        if task:
            self.from_wrapper()
        else:
            self.from_signature()

    # -- the kernel's own parameters

    def parameters(self):
        a = self.node.args
        names = a.posonlyargs + a.args + a.kwonlyargs
        defaulted = {p.arg for p in (a.posonlyargs + a.args)[len(a.posonlyargs + a.args) - len(a.defaults):]}
        defaulted |= {p.arg for p, d in zip(a.kwonlyargs, a.kw_defaults) if d}
        return [(p.arg, is_constexpr(self.e, self.module, p), p.arg in defaulted) for p in names]

    def from_signature(self):
        for name, constexpr, has_default in self.parameters():
            if name in self.choice.params or has_default:
                continue
            self.args.append(f"{name}=?" if constexpr else "?")
            self.gaps.append(f"{name}" + (" (tl.constexpr)" if constexpr else ""))
        self.gaps.append("the grid")
        self.options({})

    # -- with a task

    def from_wrapper(self):
        """The best way through a wrapper: it makes the outputs of all inputs; then one that nobody else calls, since
        a caller gets arguments ready; then one that is called like the task; then what says most."""
        best = None
        for depth, function in self.wrappers():
            swaps = [n for n, t in list(self.task.inputs.items())[1:] if isinstance(t, Tensor) and len(t.shape) == 2]
            for swap in [None] + swaps:
                w = Wrapper(self, function, swap)
                if w.launch is None:
                    continue
                trial = self.say(w)
                other = plain_name(self.task.name).replace("_", "") not in function.node.name.replace("_", "").lower()
                key = (trial.unfit, depth, other, len(trial.gaps), len(w.assumed) + len(w.required))
                if best is None or key < best[0]:
                    best = (key, trial)
        if best is None:
            self.gaps.append("the launch: no function of the module that launches the kernel could be followed with the "
                             f"tensors of the task {self.task.name}")
            return self.from_signature()
        self.__dict__.update(best[1].__dict__)

    def wrappers(self):
        """Functions of the module that lead to the launch, those that others call last."""
        functions = [(None, n) for n in ast.walk(self.module.tree) if isinstance(n, ast.FunctionDef)]
        mentions = {n: {x.id for x in ast.walk(n) if isinstance(x, ast.Name)} for _, n in functions}
        classes = [n for n in ast.walk(self.module.tree) if isinstance(n, ast.ClassDef)]
        leads, grown = {self.node.name}, True
        while grown:
            more = {n.name for _, n in functions if mentions[n] & leads and n is not self.node}
            more |= {c.name for c in classes if any(n in c.body for _, n in functions if n.name in leads and mentions[n] & leads)}
            grown = not more <= leads
            leads |= more
        found = [n for _, n in functions if n.name in leads and mentions[n] & leads and n is not self.node
                 and not is_kernel(self.e, Defined(self.module, n))]
        called = set().union(*(mentions[n] for n in found)) if found else set()
        called |= {n.name for c in classes if c.name in called for n in c.body if isinstance(n, ast.FunctionDef)}
        return sorted(((n.name in called, Defined(self.module, n)) for n in found), key=lambda f: f[0])[:MOST_WRAPPERS]

    def say(self, w):
        """A copy of this draft, filled in from one way through a wrapper."""
        d = Draft.__new__(Draft)
        d.__dict__.update(self.__dict__)
        d.lets, d.buffers, d.maps, d.args, d.clauses, d.wrapper, d.overruled = {}, {}, {}, [], [], w, set()
        d.gaps, d.assumed, d.required = list(w.gaps), w.assumed, w.required
        if w.more:
            d.gaps.append("further launches of the same kernel: the wrapper launches it in a loop or several times")
        if w.others:
            d.gaps.append("further launches, of " + ", ".join(sorted({l.kernel.node.name for l in w.others})) +
                          ", which the wrapper needs as well")
        d.unfit = len(d.gaps)
        d.fill(w.launch)
        return d

    def fill(self, launch):
        params = self.parameters()
        values = dict(zip((p[0] for p in params), launch.values))
        values.update(launch.named)
        values.update({k: t for k, v in values.items() if isinstance(v, Sym) and v.truth
                       and (t := settled(v, self.required)) is not None})
        for name in self.choice.params:
            if name not in OPTIONS:
                values[name] = Sym(self.renamed[name])
        for name, function in self.choice.heuristics.items():
            value = self.e.call(function, [dict(values)], {}, Scope(self.module, {}), None)
            values[name] = self.as_let(name, value)
            self.overruled.add(name)
        for hook in [c.pre_hook for c in self.choice.configs[:1] if isinstance(c.pre_hook, Defined)]:
            self.e.call(hook, [values], {}, Scope(self.module, {}), None)
        plain = True
        for name, constexpr, has_default in params:
            if name not in values:
                plain = plain and constexpr
                if not has_default:
                    self.gaps.append(f"{name}: the wrapper passes nothing for it")
                    self.args.append(f"{name}=?")
                continue
            if isinstance(values[name], Sym) and values[name].text == name and constexpr and name in self.choice.params:
                continue    # a constexpr that is called like a param takes it unasked
            said = self.argument(name, values[name], constexpr)
            self.args.append(said if plain and not constexpr else f"{name}={said}")
        used = {v.tensor.base.name if isinstance(v, Descriptor) else v.base.name if isinstance(v, Tensor) else getattr(v, "name", None) for v in values.values()}
        unused = [n for n in self.task.inputs if n not in used]
        if unused:
            self.gaps.append(f"the task's {', '.join(unused)}, which the launch does not pass")
            self.unfit += 1
        self.grid(launch.grid, values)
        self.options({k: v for k, v in values.items() if k in OPTIONS})

    def as_let(self, name, value):
        if isinstance(value, Sym) and value.text != name:
            let = OPTION_PARAMS.get(name, name) if name not in self.task.taken() else f"{name}_"
            self.lets[let] = value.text
            return Sym(let)
        return value

    def argument(self, name, value, constexpr):
        if isinstance(value, Tensor):
            return self.memory(name, value)
        if isinstance(value, Descriptor):
            return self.descriptor(name, value)
        if isinstance(value, Given) and not constexpr:
            return value.name
        if isinstance(value, Sym):
            return self.short(name, value)
        if isinstance(value, Real):
            return self.let(name, value.text, ": f32")
        if value is None or isinstance(value, bool):
            return str(value)
        if isinstance(value, int):
            return str(value)
        if isinstance(value, float) and math.isfinite(value):
            return f"f32({value!r})"
        if isinstance(value, str) and "'" not in value:
            return f"'{value}'"
        dtype = dtype_name(value)
        same = dtype and next((n for n, t in {**self.task.inputs, **self.task.outputs}.items() if t.dtype == dtype), None)
        if same:
            return f"dtype({same})"
        self.gaps.append(f"{name}: {getattr(value, 'why', 'a value that directives cannot say')}")
        return "?"

    def short(self, name, value):
        """A long expression becomes a let."""
        return value.text if len(value.text) < 24 else self.let(name, value.text)

    def let(self, name, text, kind=""):
        found = next((n for n, t in self.lets.items() if t == text), None)
        if not found:
            found = (name if name not in self.task.taken() and name not in self.lets else f"{name}_") + kind
            self.lets[found] = text
        return found.removesuffix(kind)

    def memory(self, name, t):
        base = t.base
        if base.name:
            return base.name
        wanted = plain_name(name)
        while wanted in self.task.taken() or wanted in self.buffers or wanted in self.renamed.values():
            wanted += "_"
        if not base.shape or not all(map(is_integer, base.shape)):
            self.gaps.append(f"{name}: a tensor whose size is not known")
            return "?"
        base.name = wanted
        self.buffers[wanted] = f"{SHORT.get(base.dtype, base.dtype)}[{', '.join(map(text_of, base.shape))}]" + (" zero" if base.zero else "")
        return wanted

    def descriptor(self, name, d):
        """A descriptor over the whole of a row-major tensor."""
        box = d.block_shape
        if not (isinstance(box, (list, tuple)) and all(map(is_integer, box)) and all(map(is_integer, d.shape))):
            self.gaps.append(f"{name}: a descriptor whose box is not known")
            return "?"
        if d.strides != row_major(d.shape) or elements(d) != elements(d.tensor.base):
            self.gaps.append(f"{name}: a descriptor of a part of a tensor, or of one that is not row-major")
            return "?"
        of = self.memory(name, d.tensor)
        while name in self.task.taken() or name in self.buffers:
            name += "_"
        dims = "" if d.shape == d.tensor.base.shape else f" dims({', '.join(map(text_of, d.shape[::-1]))})"
        self.maps[name] = f"{of} box({', '.join(map(text_of, box[::-1]))}){dims}"
        return name

    def grid(self, grid, values):
        if isinstance(grid, Defined):
            meta = {k: Sym(self.renamed[k]) for k in self.choice.params if k not in OPTIONS}
            grid = self.e.call(grid, [{**values, **meta}], {}, Scope(self.module, {}), None)
        sizes = list(grid) if isinstance(grid, (tuple, list)) else [grid]
        while len(sizes) > 1 and sizes[-1] == 1:
            sizes.pop()
        if not all(map(is_integer, sizes)):
            why = next((s.why for s in sizes if isinstance(s, Unknown)), "not known")
            self.gaps.append(f"the grid: {why}")
        self.clauses.append("grid(" + ", ".join(text_of(s) if is_integer(s) else "?" for s in sizes) + ")")

    def options(self, values):
        for key, clause in OPTIONS.items():
            value = values.get(key)
            if key in self.choice.params and value is None:
                self.clauses.append(f"{clause}({OPTION_PARAMS[key]})")
            elif is_integer(value) and not isinstance(value, bool):
                self.clauses.append(f"{clause}({self.short(OPTION_PARAMS[key], value) if isinstance(value, Sym) else value})")
            elif value is not None:
                self.gaps.append(f"{clause}: {getattr(value, 'why', 'not known')}")

    # -- text

    def params_text(self):
        for name, values in self.choice.params.items():
            if name in self.overruled:    # by a heuristic
                continue
            listed = ", ".join(map(str, sorted(values)[:MOST_PARAM_VALUES]))
            yield f"#! param {self.renamed[name]} = {values[0]} {{{listed}}}"

    def text(self):
        out = list(self.params_text())
        mark = "#!" if not self.gaps else "# "
        out += [f"{mark} let {n} = {t}" for n, t in self.lets.items()]
        out += [f"{mark} require {text}" for text in self.required]
        out += [f"{mark} buffer {n}: {t}" for n, t in self.buffers.items()]
        out += [f"{mark} tensormap {n}: {t}" for n, t in self.maps.items()]
        grid = [] if self.clauses and self.clauses[0].startswith("grid(") else ["grid(?)"]
        out.append(f"{mark} launch {self.node.name} {' '.join(grid + self.clauses)} args({', '.join(self.args)})")
        return out
