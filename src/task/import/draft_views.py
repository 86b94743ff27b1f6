"""draft_views.py - operators that only say where an element lies: views, slices, joins, gathers.
SPDX-License-Identifier: Apache-2.0
"""
from draft_formula import Value, atom, c_text, kind_of, linear, number, unravel
from trace import NoDraft, Text


class Views:
    def op_view(self, g, outs):
        v, shape = self.of(g["self"]), self.shape(outs[0])
        kept = [d for d, s in enumerate(v.shape) if s != "1"], [d for d, s in enumerate(shape) if s != "1"]
        if [v.shape[d] for d in kept[0]] == [shape[d] for d in kept[1]]:
            pairs = dict(zip(*kept))
            at = lambda i: v.at([i[pairs[d]] if d in pairs else "0" for d in range(len(v.shape))])
        else:
            at = lambda i: v.at(unravel(linear(i, shape), v.shape))
        return self.formula(shape, v.kind, at, v.dtype)

    op_reshape = op_unsafe_view = op_reshape_alias = op_unsqueeze = op_squeeze = op_flatten = op_view

    def op_expand(self, g, outs):
        v, shape = self.of(g["self"]), self.shape(outs[0])
        return Value(shape, v.kind, self.spread(v, shape), v.dtype)

    def axis(self, d, rank):
        return d + rank if d < 0 else d

    def permuted(self, v, order):
        def at(i):
            index = [None] * len(order)
            for d, o in enumerate(order):
                index[o] = i[d]
            return v.at(index)
        return Value([v.shape[o] for o in order], v.kind, at, v.dtype)

    def op_permute(self, g, outs):
        v = self.of(g["self"])
        return self.permuted(v, [self.axis(d, len(v.shape)) for d in g["dims"]])

    def op_transpose(self, g, outs):
        v = self.of(g["self"])
        order = list(range(len(v.shape)))
        a, b = (self.axis(g[k], len(order)) for k in ("dim0", "dim1"))
        order[a], order[b] = order[b], order[a]
        return self.permuted(v, order)

    def op_t(self, g, outs):
        v = self.of(g["self"])
        return self.permuted(v, list(reversed(range(len(v.shape)))))

    def moved(self, v, shape, d, text):
        """Index `d` of the result reads `text` of the operand."""
        return self.formula(shape, v.kind, lambda i: v.at([text(i[k]) if k == d else i[k] for k in range(len(i))]), v.dtype)

    def op_slice(self, g, outs):
        v = self.of(g["self"])
        d, start, step = self.axis(g.get("dim", 0) or 0, len(v.shape)), g.get("start") or 0, g.get("step") or 1
        begin = c_text(start) if isinstance(start, Text) else f"({v.shape[d]} - {-start})" if start < 0 else str(start)
        if begin == "0" and step == 1:
            return Value(self.shape(outs[0]), v.kind, v.at, v.dtype)
        return self.moved(v, self.shape(outs[0]), d, lambda i: f"({i} * {step} + {begin})" if step != 1 else f"({i} + {begin})")

    def op_select(self, g, outs):
        v = self.of(g["self"])
        d, at = self.axis(g["dim"], len(v.shape)), g["index"]
        text = c_text(at) if isinstance(at, Text) else f"({v.shape[d]} - {-at})" if at < 0 else str(at)
        return Value(self.shape(outs[0]), v.kind, lambda i: v.at(i[:d] + [text] + i[d:]), v.dtype)

    def op_split(self, g, outs):
        v = self.of(g["self"])
        d, parts, begin = self.axis(g.get("dim", 0) or 0, len(v.shape)), [], []
        for out in outs:
            shape, offset = self.shape(out), " + ".join(begin) or "0"
            parts.append(self.moved(v, shape, d, lambda i, o=offset: f"({i} + {o})"))
            begin.append(shape[d])
        return parts

    op_split_with_sizes = op_unsafe_split = op_unsafe_split_with_sizes = op_split

    def op_glu(self, g, outs):
        v, half = self.stored(self.of(g["self"])), self.shape(outs[0])
        d = self.axis(g.get("dim", -1), len(v.shape))
        other = self.moved(v, half, d, lambda i: f"({i} + {half[d]})")
        return self.formula(half, v.kind, lambda i: f"({v.at(i)} * sigmoid({other.at(i)}))", v.dtype)

    def op_diagonal(self, g, outs):
        v, offset = self.of(g["self"]), g.get("offset", 0)
        a, b = (self.axis(g.get(k, n), len(v.shape)) for n, k in enumerate(("dim1", "dim2")))
        if isinstance(offset, Text):
            raise NoDraft("a diagonal that depends on sizes")
        def at(i):
            rest = iter(i[:-1])
            down, right = f"({i[-1]} + {max(0, -offset)})", f"({i[-1]} + {max(0, offset)})"
            return v.at([down if k == a else right if k == b else next(rest) for k in range(len(v.shape))])
        return Value(self.shape(outs[0]), v.kind, at, v.dtype)

    op_diagonal_copy = op_linalg_diagonal = op_diagonal

    def op_roll(self, g, outs):
        v = self.of(g["self"])
        if not g.get("dims"):
            raise NoDraft("a roll of all elements")
        shifts = {self.axis(d, len(v.shape)): c_text(s) if isinstance(s, Text) else str(s) for s, d in zip(g["shifts"], g["dims"])}
        return self.formula(v.shape, v.kind, lambda i: v.at([f"mod({x} - ({shifts[k]}), {v.shape[k]})" if k in shifts else x for k, x in enumerate(i)]), v.dtype)

    def op_pixel_shuffle(self, g, outs):
        v, r, n = self.of(g["self"]), g["upscale_factor"], len(outs[0].shape)
        def at(i):
            c, y, x = i[n - 3], i[n - 2], i[n - 1]
            return v.at([*i[:n - 3], f"(({c}) * {r * r} + ({y}) % {r} * {r} + ({x}) % {r})", f"(({y}) / {r})", f"(({x}) / {r})"])
        return self.formula(self.shape(outs[0]), v.kind, at, v.dtype)

    def op_pixel_unshuffle(self, g, outs):
        v, r, n = self.of(g["self"]), g["downscale_factor"], len(outs[0].shape)
        def at(i):
            c, y, x = i[n - 3], i[n - 2], i[n - 1]
            return v.at([*i[:n - 3], f"(({c}) / {r * r})", f"(({y}) * {r} + ({c}) % {r * r} / {r})", f"(({x}) * {r} + ({c}) % {r})"])
        return self.formula(self.shape(outs[0]), v.kind, at, v.dtype)

    def op_unbind(self, g, outs):
        v = self.of(g["self"])
        d = self.axis(g.get("dim", 0) or 0, len(v.shape))
        return [Value(self.shape(o), v.kind, lambda i, n=n: v.at(i[:d] + [str(n)] + i[d:]), v.dtype) for n, o in enumerate(outs)]

    def op_flip(self, g, outs):
        v = self.of(g["self"])
        dims = [self.axis(d, len(v.shape)) for d in g["dims"]]
        return self.formula(v.shape, v.kind, lambda i: v.at([f"({v.shape[k]} - 1 - {x})" if k in dims else x for k, x in enumerate(i)]), v.dtype)

    def op_cat(self, g, outs):
        parts = [self.of(t) for t in g["tensors"]]
        d, shape = self.axis(g.get("dim", 0) or 0, len(outs[0].shape)), self.shape(outs[0])
        def at(i):
            text, ends = parts[-1], [p.shape[d] for p in parts]
            begins = [" + ".join(ends[:n]) or "0" for n in range(len(parts))]
            reads = [p.at([f"({x} - ({b}))" if k == d and b != "0" else x for k, x in enumerate(i)]) for p, b in zip(parts, begins)]
            text = reads[-1]
            for n in range(len(parts) - 2, -1, -1):
                text = f"({i[d]} < {' + '.join(ends[:n + 1])} ? {reads[n]} : {text})"
            return text
        return self.formula(shape, kind_of(outs[0].dtype), at, outs[0].dtype)

    def op_stack(self, g, outs):
        parts = [self.of(t) for t in g["tensors"]]
        d, shape = self.axis(g.get("dim", 0) or 0, len(outs[0].shape)), self.shape(outs[0])
        def at(i):
            text = parts[-1].at(i[:d] + i[d + 1:])
            for n in range(len(parts) - 2, -1, -1):
                text = f"({i[d]} == {n} ? {parts[n].at(i[:d] + i[d + 1:])} : {text})"
            return text
        return self.formula(shape, kind_of(outs[0].dtype), at, outs[0].dtype)

    def op_repeat(self, g, outs):
        v, shape = self.of(g["self"]), self.shape(outs[0])
        shift = len(shape) - len(v.shape)
        return self.formula(shape, v.kind, lambda i: v.at([f"({i[k + shift]} % {atom(s)})" if s != "1" else "0" for k, s in enumerate(v.shape)]), v.dtype)

    def op_constant_pad_nd(self, g, outs):
        v, shape, fill = self.of(g["self"]), self.shape(outs[0]), number(g.get("value", 0) or 0)
        pads, rank = g["pad"], len(v.shape)
        before = {rank - 1 - n: pads[2 * n] for n in range(len(pads) // 2)}
        def at(i):
            index, tests = [], []
            for k, x in enumerate(i):
                begin = before.get(k, 0)
                moved = f"({x} - {begin})" if begin else x
                if k in before:
                    tests.append(f"{moved} >= 0 && {moved} < {v.shape[k]}")
                index.append(moved)
            return f"({' && '.join(tests)} ? {v.at(index)} : {fill})"
        return self.formula(shape, v.kind, at, v.dtype)

    # -- by index

    def op_embedding(self, g, outs):
        table, which = self.of(g["weight"]), self.of(g["indices"])
        return self.formula(self.shape(outs[0]), table.kind, lambda i: table.at([which.at(i[:-1]), i[-1]]), table.dtype)

    def op_index_select(self, g, outs):
        v, which = self.of(g["self"]), self.of(g["index"])
        return self.moved(v, self.shape(outs[0]), self.axis(g["dim"], len(v.shape)), lambda i: which.at([i]))

    def op_gather(self, g, outs):
        v, which = self.of(g["self"]), self.of(g["index"])
        d = self.axis(g["dim"], len(v.shape))
        return self.formula(self.shape(outs[0]), v.kind, lambda i: v.at([which.at(i) if k == d else x for k, x in enumerate(i)]), v.dtype)

    def op_index(self, g, outs):
        v, which = self.of(g["self"]), [w if w is None else self.of(w) for w in g["indices"]]
        which += [None] * (len(v.shape) - len(which))
        used = [k for k, w in enumerate(which) if w is not None]
        if not used or used != list(range(used[0], used[-1] + 1)) or any(which[k].dtype == "bool" for k in used):
            raise NoDraft("it is indexed by a mask, or by tensors that are apart")
        rank, shape = max(len(which[k].shape) for k in used), self.shape(outs[0])
        def at(i):
            inner = i[used[0]:used[0] + rank]
            index = list(i[:used[0]])
            for k in used:
                w = which[k]
                text = w.at(["0" if s == "1" else x for s, x in zip(w.shape, inner[rank - len(w.shape):])])
                index.append(f"(({text}) < 0 ? ({text}) + {v.shape[k]} : ({text}))" if w.kind == "int64_t" and len(text) < 80 else text)
            return v.at(index + list(i[used[0] + rank:]))
        return self.formula(shape, v.kind, at, v.dtype)
