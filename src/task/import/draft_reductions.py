"""draft_reductions.py - operators that make one element of many: sums, extremes, spreads, softmax, scans, orders.
SPDX-License-Identifier: Apache-2.0
"""
from draft_elementwise import BINARY
from draft_formula import Value, kind_of, linear, times, unravel
from trace import NoDraft


class Reductions:
    def dims_of(self, g, rank):
        dims = g.get("dim")
        dims = [dims] if isinstance(dims, int) else list(dims or [])
        return sorted(self.axis(d, rank) for d in dims) or list(range(rank))

    def reduce(self, v, dims, start, step, end="{a}", kind=None, dtype=""):
        """A buffer over the other dimensions, and the shape that it has; `step` sees {a} and {v}."""
        kept = [d for d in range(len(v.shape)) if d not in dims]
        shape, kind = [v.shape[d] for d in kept], kind or v.kind
        name, result = self.buffer(shape, kind, dtype or v.dtype)
        outer = self.loops(shape, "i")
        self.put(f"{kind} a = {start};")
        inner = self.loops([v.shape[d] for d in dims], "r")
        index = [None] * len(v.shape)
        for d, x in (*zip(kept, outer), *zip(dims, inner)):
            index[d] = x
        self.put(f"const {v.kind} v = {v.at(index)};")
        self.put(step.format(a="a", v="v", r=inner[0] if inner else "0"))
        self.end(inner)
        count = times([v.shape[d] for d in dims])
        self.put(f"{name}[{linear(outer, shape)}] = {end.format(a='a', n=f'(real)({count})')};")
        self.end(outer)
        result.is_stored = True
        return result

    def keeping(self, value, dims, out):
        """With keepdim the reduced dimensions stand as 1."""
        shape = self.shape(out)
        if len(shape) == len(value.shape):
            return value
        return Value(shape, value.kind, lambda i: value.at([x for k, x in enumerate(i) if k not in dims]), value.dtype)

    def reduced(self, g, out, start, step, end="{a}", kind=None):
        v = self.of(g["self"])
        v = self.stored(v) if len(v.at([f"i{d}" for d in range(len(v.shape))])) > 200 else v
        dims = self.dims_of(g, len(v.shape))
        return self.keeping(self.reduce(v, dims, start, step, end, kind or kind_of(out.dtype), out.dtype), dims, out)

    def op_sum(self, g, outs):
        return self.reduced(g, outs[0], "0", "{a} += {v};")

    def op_mean(self, g, outs):
        return self.reduced(g, outs[0], "0", "{a} += {v};", "{a} / {n}")

    def op_prod(self, g, outs):
        return self.reduced(g, outs[0], "1", "{a} *= {v};")

    def op_amax(self, g, outs):
        whole = kind_of(outs[0].dtype) != "real"
        return self.reduced(g, outs[0], "INT64_MIN" if whole else "-INFINITY", "if ({v} > {a}) {a} = {v};")

    def op_amin(self, g, outs):
        whole = kind_of(outs[0].dtype) != "real"
        return self.reduced(g, outs[0], "INT64_MAX" if whole else "INFINITY", "if ({v} < {a}) {a} = {v};")

    def op_any(self, g, outs):
        return self.reduced(g, outs[0], "0", "if ({v}) {a} = 1;", kind="int64_t")

    def op_all(self, g, outs):
        return self.reduced(g, outs[0], "1", "if (!{v}) {a} = 0;", kind="int64_t")

    def op_count_nonzero(self, g, outs):
        return self.reduced(g, outs[0], "0", "{a} += {v} != 0;", kind="int64_t")

    def op_aminmax(self, g, outs):
        return [self.op_amin(g, outs[:1]), self.op_amax(g, outs[1:])]

    def place(self, g, out, sign):
        """Where the first extreme value is."""
        v = self.stored(self.of(g["self"]))
        v = self.flat(v) if g.get("dim") is None else v
        d = self.axis(g["dim"], len(v.shape)) if g.get("dim") is not None else 0
        kept = [k for k in range(len(v.shape)) if k != d]
        shape = [v.shape[k] for k in kept]
        name, result = self.buffer(shape, "int64_t", "int64")
        outer = self.loops(shape, "i")
        index = lambda x: [x if k == d else outer[kept.index(k)] for k in range(len(v.shape))]
        self.put("int64_t best = 0;")
        self.put(f"for (int64_t r = 1; r < {v.shape[d]}; r++)")
        self.put(f"    if ({v.at(index('r'))} {sign} {v.at(index('best'))}) best = r;")
        self.put(f"{name}[{linear(outer, shape)}] = best;")
        self.end(outer)
        result.is_stored = True
        return self.keeping(result, [d], out)

    def flat(self, v):
        shape = [times(v.shape)]
        return Value(shape, v.kind, lambda i: v.at(unravel(i[0], v.shape)), v.dtype)

    def op_argmax(self, g, outs):
        return self.place(g, outs[0], ">")

    def op_argmin(self, g, outs):
        return self.place(g, outs[0], "<")

    def op_max(self, g, outs):
        if "other" in g:
            return self.each(BINARY["maximum"], [g["self"], g["other"]], outs[0])
        return [self.op_amax(g, outs)] + ([self.place(g, outs[1], ">")] if len(outs) > 1 else [])

    def op_min(self, g, outs):
        if "other" in g:
            return self.each(BINARY["minimum"], [g["self"], g["other"]], outs[0])
        return [self.op_amin(g, outs)] + ([self.place(g, outs[1], "<")] if len(outs) > 1 else [])

    def spread_of(self, g, outs, root=False):
        v = self.stored(self.of(g["self"]))
        dims = self.dims_of(g, len(v.shape))
        less = g.get("correction", 1 if g.get("unbiased", True) else 0)
        less = 1 if less is None else less
        mean = self.reduce(v, dims, "0", "{a} += {v};", "{a} / {n}")
        kept = [d for d in range(len(v.shape)) if d not in dims]
        far = Value(v.shape, "real", lambda i: f"({v.at(i)} - {mean.at([i[d] for d in kept])})", v.dtype)
        end = f"{{a}} / ({{n}} - {less})"
        return self.keeping(self.reduce(far, dims, "0", "{a} += {v} * {v};", f"sqrt({end})" if root else end), dims, outs[0]), mean, dims

    def op_var(self, g, outs):
        return self.spread_of(g, outs)[0]

    def op_std(self, g, outs):
        return self.spread_of(g, outs, True)[0]

    def op_var_mean(self, g, outs):
        var, mean, dims = self.spread_of(g, outs)
        return [var, self.keeping(mean, dims, outs[1])]

    def op_linalg_vector_norm(self, g, outs):
        p = g.get("ord", g.get("p", 2))
        p = 2 if p is None else p
        if p == 2:
            return self.reduced(g, outs[0], "0", "{a} += {v} * {v};", "sqrt({a})")
        if p == 1:
            return self.reduced(g, outs[0], "0", "{a} += fabs({v});")
        if p == float("inf"):
            return self.reduced(g, outs[0], "0", "if (fabs({v}) > {a}) {a} = fabs({v});")
        raise NoDraft(f"a norm of order {p}")

    op_norm = op_linalg_vector_norm

    def op_softmax(self, g, outs, is_log=False):
        v = self.stored(self.of(g["self"]))
        d = [self.axis(g["dim"], len(v.shape))]
        kept = [k for k in range(len(v.shape)) if k != d[0]]
        top = self.reduce(v, d, "-INFINITY", "if ({v} > {a}) {a} = {v};")
        shifted = Value(v.shape, "real", lambda i: f"({v.at(i)} - {top.at([i[k] for k in kept])})", v.dtype)
        total = self.reduce(shifted, d, "0", "{a} += exp({v});")
        of = lambda i: total.at([i[k] for k in kept])
        if is_log:
            return self.formula(v.shape, "real", lambda i: f"({shifted.at(i)} - log({of(i)}))", v.dtype)
        return self.formula(v.shape, "real", lambda i: f"(exp({shifted.at(i)}) / {of(i)})", v.dtype)

    def op_log_softmax(self, g, outs):
        return self.op_softmax(g, outs, True)

    def op_logsumexp(self, g, outs):
        v = self.stored(self.of(g["self"]))
        dims = self.dims_of(g, len(v.shape))
        kept = [k for k in range(len(v.shape)) if k not in dims]
        top = self.reduce(v, dims, "-INFINITY", "if ({v} > {a}) {a} = {v};")
        shifted = Value(v.shape, "real", lambda i: f"({v.at(i)} - {top.at([i[k] for k in kept])})", v.dtype)
        total = self.reduce(shifted, dims, "0", "{a} += exp({v});", "log({a})")
        return self.keeping(Value(total.shape, "real", lambda i: f"({total.at(i)} + {top.at(i)})", v.dtype), dims, outs[0])

    def op_cumsum(self, g, outs, sign="+=", start="0"):
        v = self.of(g["self"])
        d = self.axis(g["dim"], len(v.shape))
        kind = kind_of(outs[0].dtype)
        kept = [k for k in range(len(v.shape)) if k != d]
        name, result = self.buffer(v.shape, kind, outs[0].dtype)
        outer = self.loops([v.shape[k] for k in kept], "i")
        self.put(f"{kind} a = {start};")
        self.put(f"for (int64_t r = 0; r < {v.shape[d]}; r++) {{")
        index = ["r" if k == d else outer[kept.index(k)] for k in range(len(v.shape))]
        self.put(f"    a {sign} {v.at(index)};")
        self.put(f"    {name}[{linear(index, v.shape)}] = a;")
        self.put("}")
        self.end(outer)
        result.is_stored = True
        return result

    def op_cumprod(self, g, outs):
        return self.op_cumsum(g, outs, "*=", "1")

    # -- order

    def op_sort(self, g, outs, count=None):
        """By counting for each element how many come before it."""
        v = self.stored(self.of(g["self"]))
        d = self.axis(g.get("dim", -1) if g.get("dim") is not None else -1, len(v.shape))
        sign = ">" if g.get("descending", g.get("largest", False)) else "<"
        kept = [k for k in range(len(v.shape)) if k != d]
        shape = self.shape(outs[0])
        values, first = self.buffer(shape, v.kind, v.dtype)
        places, second = self.buffer(shape, "int64_t", "int64")
        outer = self.loops([v.shape[k] for k in kept], "i")
        index = lambda x: [x if k == d else outer[kept.index(k)] for k in range(len(v.shape))]
        self.put(f"for (int64_t r = 0; r < {v.shape[d]}; r++) {{")
        self.put("    int64_t rank = 0;")
        self.put(f"    for (int64_t q = 0; q < {v.shape[d]}; q++)")
        self.put(f"        rank += {v.at(index('q'))} {sign} {v.at(index('r'))} || ({v.at(index('q'))} == {v.at(index('r'))} && q < r);")
        self.put(f"    if (rank >= {shape[d]}) continue;")
        self.put(f"    {values}[{linear(index('rank'), shape)}] = {v.at(index('r'))};")
        self.put(f"    {places}[{linear(index('rank'), shape)}] = r;")
        self.put("}")
        self.end(outer)
        first.is_stored = second.is_stored = True
        return [first, second]

    def op_topk(self, g, outs):
        return self.op_sort({**g, "largest": g.get("largest", True)}, outs)

    def op_bincount(self, g, outs):
        v, shape = self.of(g["self"]), self.shape(outs[0])
        name, result = self.buffer(shape, "int64_t", "int64")
        self.put(f"for (int64_t i = 0; i < {shape[0]}; i++) {name}[i] = 0;")
        index = self.loops(v.shape, "i")
        self.put(f"{name}[{v.at(index)}]++;")
        self.end(index)
        result.is_stored = True
        return result
