"""draft_windows.py - products, convolutions and pools, and the normalizations and losses made of them.
SPDX-License-Identifier: Apache-2.0
"""
from draft_formula import Value, c_text, kind_of, linear, number, times
from trace import NoDraft, Ref, Text


class Windows:
    def product(self, a, b, shape, at_a, at_b, inner, add=None):
        name, result = self.buffer(shape, "real", "float32")
        index = self.loops(shape, "i")
        self.put("real a = 0;")
        self.put(f"for (int64_t k = 0; k < {inner}; k++) a += {a.at(at_a(index))} * {b.at(at_b(index))};")
        self.put(f"{name}[{linear(index, shape)}] = {add(index) if add else 'a'};")
        self.end(index)
        result.is_stored = True
        return result

    def cheap(self, value):
        return value if len(value.at([f"i{d}" for d in range(len(value.shape))])) < 100 else self.stored(value)

    def op_mm(self, g, outs, add=None):
        a, b = self.cheap(self.of(g["self"])), self.cheap(self.of(g["mat2"]))
        if kind_of(outs[0].dtype) != "real":
            raise NoDraft("a product of integers")
        return self.product(a, b, self.shape(outs[0]), lambda i: [*i[:-1], "k"], lambda i: [*i[:-2], "k", i[-1]], a.shape[-1], add)

    op_bmm = op_mm

    def op_addmm(self, g, outs):
        bias, shape = self.of(g["self"]), self.shape(outs[0])
        read = self.spread(bias, shape)
        alpha, beta = g.get("alpha", 1), g.get("beta", 1)
        add = lambda i: f"{number(alpha) + ' * ' if alpha != 1 else ''}a + {number(beta) + ' * ' if beta != 1 else ''}{read(i)}"
        return self.op_mm({"self": g.get("mat1", g.get("batch1")), "mat2": g.get("mat2", g.get("batch2"))}, outs, add)

    op_baddbmm = op_addmm

    def op_mv(self, g, outs):
        a, b = self.cheap(self.of(g["self"])), self.cheap(self.of(g["vec"]))
        return self.product(a, b, self.shape(outs[0]), lambda i: [*i, "k"], lambda i: ["k"], a.shape[-1])

    def op_dot(self, g, outs):
        a, b = self.of(g["self"]), self.of(g["tensor"])
        return self.product(a, b, [], lambda i: ["k"], lambda i: ["k"], a.shape[0])

    def window(self, x, shape, sizes, stride, pad, dilation):
        """Loops over a window at the point of the enclosing loops; indices into x, and the test that they are inside."""
        n = len(sizes)
        k = self.loops(sizes, "k")
        where, tests = [], []
        for d in range(n):
            text = f"(i{d + 2 if len(shape) == n + 2 else d + 1} * {stride[d]} - {pad[d]} + {k[d]} * {dilation[d]})"
            where.append(text)
            if str(pad[d]) != "0":
                tests.append(f"{text} >= 0 && {text} < {x.shape[len(x.shape) - n + d]}")
        return k, where, " && ".join(tests)

    def full_loops(self, shape):
        """As loops(), also over sizes that are 1: a window needs its index."""
        for d, size in enumerate(shape):
            self.put(f"for (int64_t i{d} = 0; i{d} < {size}; i{d}++) {{")
            self.depth += 1
        return [f"i{d}" for d in range(len(shape))]

    def texts(self, values, n):
        values = list(values) if isinstance(values, list) else [values]
        values = values * n if len(values) == 1 else values
        return [c_text(v) if isinstance(v, Text) else v for v in values]

    def op_convolution(self, g, outs):
        x, w, shape = self.cheap(self.of(g["input"])), self.cheap(self.of(g["weight"])), self.shape(outs[0])
        n, groups = len(shape) - 2, g.get("groups", 1)
        groups = c_text(groups) if isinstance(groups, Text) else groups
        stride, pad, dilation = (self.texts(g[k], n) for k in ("stride", "padding", "dilation"))
        bias = self.of(g["bias"]) if isinstance(g.get("bias"), Ref) else None
        name, result = self.buffer(shape, "real", outs[0].dtype)
        i = self.full_loops(shape)
        self.put(f"real a = {bias.at(['i1']) if bias else '0'};")
        if g.get("transposed"):
            self.transposed(x, w, shape, stride, pad, dilation, groups)
        else:
            self.put(f"const int64_t g = i1 / (({shape[1]}) / {groups}) * ({w.shape[1]});")
            c = self.loops([w.shape[1]], "c")
            k, where, test = self.window(x, shape, w.shape[2:], stride, pad, dilation)
            guard = f"if ({test}) " if test else ""
            self.put(f"{guard}a += {x.at(['i0', f'(g + {c[0]})', *where])} * {w.at(['i1', c[0], *k])};")
            self.end(k)
            self.end(c)
        self.put(f"{name}[{linear(i, shape)}] = a;")
        self.end(i)
        result.is_stored = True
        return result

    def transposed(self, x, w, shape, stride, pad, dilation, groups):
        """What each input element adds where: read from the output's side."""
        per = f"(({x.shape[1]}) / {groups})"
        self.put(f"const int64_t g = i1 / ({w.shape[1]});")
        self.put(f"for (int64_t c = 0; c < {per}; c++) {{")
        self.depth += 1
        k = self.loops(w.shape[2:], "k")
        tests, where = [], []
        for d in range(len(k)):
            text = f"(i{d + 2} + {pad[d]} - {k[d]} * {dilation[d]})"
            tests.append(f"{text} >= 0 && {text} % {stride[d]} == 0 && {text} / {stride[d]} < {x.shape[d + 2]}")
            where.append(f"({text} / {stride[d]})")
        self.put(f"if ({' && '.join(tests)}) a += {x.at(['i0', f'(g * {per} + c)', *where])} * {w.at([f'(g * {per} + c)', f'(i1 % ({w.shape[1]}))', *k])};")
        self.end(k)
        self.depth -= 1
        self.put("}")

    def op_max_pool2d_with_indices(self, g, outs):
        return [self.pool(g, outs, "-INFINITY", "if ({v} > a) a = {v};", lambda n: "a")]

    op_max_pool3d_with_indices = op_max_pool2d_with_indices

    def op_avg_pool2d(self, g, outs):
        if g.get("divisor_override") or g.get("count_include_pad", True) is False:
            raise NoDraft("an average pool that leaves its border out")
        return self.pool(g, outs, "0", "a += {v};", lambda n: f"a / ({n})")

    op_avg_pool1d = op_avg_pool3d = op_avg_pool2d

    def pool(self, g, outs, start, step, end):
        x, shape, rank = self.cheap(self.of(g["self"])), self.shape(outs[0]), len(g["kernel_size"])
        if g.get("ceil_mode"):
            raise NoDraft("a pool in ceil mode")
        sizes = [str(s) for s in self.texts(g["kernel_size"], rank)]
        stride = self.texts(g.get("stride") or g["kernel_size"], rank)
        pad, dilation = self.texts(g.get("padding") or [0], rank), self.texts(g.get("dilation") or [1], rank)
        name, result = self.buffer(shape, "real", outs[0].dtype)
        i = self.full_loops(shape)
        self.put(f"real a = {start};")
        k, where, test = self.window(x, shape, sizes, stride, pad, dilation)
        self.put((f"if ({test}) {{ " if test else "{ ") + f"const real v = {x.at([*i[:len(i) - rank], *where])}; {step.format(v='v')} }}")
        self.end(k)
        self.put(f"{name}[{linear(i, shape)}] = {end(times(sizes))};")
        self.end(i)
        result.is_stored = True
        return result

    def op_adaptive_avg_pool2d(self, g, outs):
        n = len(g["output_size"])
        if any(s != 1 for s in g["output_size"]):
            raise NoDraft("an adaptive pool to more than one element")
        return self.reduced({"self": g["self"], "dim": list(range(-n, 0))}, outs[0], "0", "{a} += {v};", "{a} / {n}")

    op_adaptive_avg_pool3d = op_adaptive_avg_pool2d

    # -- normalization

    def scaled(self, value, g, at_channel, shape):
        w, b = (self.of(g[k]) if isinstance(g.get(k), Ref) else None for k in ("weight", "bias"))
        def at(i):
            text = value(i)
            text = f"{text} * {w.at(at_channel(i, w))}" if w else text
            return f"({text} + {b.at(at_channel(i, b))})" if b else f"({text})"
        return self.formula(shape, "real", at, "float32")

    def normalized(self, v, groups, eps, key):
        """`groups`: v seen with the dimensions of a group last; `key(i)`: which group an element is of."""
        shape, dims = groups.shape, list(range(len(groups.shape)))[-self.group_rank:]
        mean = self.reduce(groups, dims, "0", "{a} += {v};", "{a} / {n}")
        kept = [d for d in range(len(shape)) if d not in dims]
        far = Value(shape, "real", lambda i: f"({groups.at(i)} - {mean.at([i[d] for d in kept])})", "float32")
        var = self.reduce(far, dims, "0", "{a} += {v} * {v};", "{a} / {n}")
        return lambda i: f"({v.at(i)} - {mean.at(key(i))}) / sqrt({var.at(key(i))} + {eps})"

    def op_native_layer_norm(self, g, outs):
        v, n = self.stored(self.of(g["input"])), len(g["normalized_shape"])
        self.group_rank = n
        value = self.normalized(v, v, number(g["eps"]), lambda i: i[:-n])
        return [self.scaled(value, g, lambda i, w: i[-n:], v.shape)]

    def op_native_group_norm(self, g, outs):
        v, groups = self.stored(self.of(g["input"])), g["group"]
        groups = c_text(groups) if isinstance(groups, Text) else str(groups)
        per = f"(({v.shape[1]}) / {groups})"
        seen = Value([v.shape[0], groups, per, *v.shape[2:]], "real", lambda i: v.at([i[0], f"({i[1]} * {per} + {i[2]})", *i[3:]]), v.dtype)
        self.group_rank = len(v.shape) - 1
        value = self.normalized(v, seen, number(g["eps"]), lambda i: [i[0], f"({i[1]} / {per})"])
        return [self.scaled(value, g, lambda i, w: [i[1]], v.shape)]

    def op_native_batch_norm(self, g, outs):
        v, eps = self.stored(self.of(g["input"])), number(g["eps"])
        channel = lambda i, w=None: [i[1]]
        if not g["training"]:
            mean, var = self.of(g["running_mean"]), self.of(g["running_var"])
            return [self.scaled(lambda i: f"({v.at(i)} - {mean.at([i[1]])}) / sqrt({var.at([i[1]])} + {eps})", g, channel, v.shape)]
        order = [1, 0, *range(2, len(v.shape))]
        self.group_rank = len(v.shape) - 1
        value = self.normalized(v, self.permuted(v, order), eps, channel)
        return [self.scaled(value, g, channel, v.shape)]

    op_cudnn_batch_norm = op_native_batch_norm

    # -- losses

    def op_mse_loss(self, g, outs):
        a, b = self.of(g["self"]), self.of(g["target"])
        v = Value(a.shape, "real", lambda i: f"({a.at(i)} - {b.at(i)})", "float32")
        if g.get("reduction", 1) == 0:
            return self.each("(({x} - {y}) * ({x} - {y}))", [g["self"], g["target"]], outs[0])
        return self.reduce(v, list(range(len(a.shape))), "0", "{a} += {v} * {v};", "{a} / {n}" if g.get("reduction", 1) == 1 else "{a}")

    def op_smooth_l1_loss(self, g, outs):
        a, b, beta = self.of(g["self"]), self.of(g["target"]), number(g.get("beta", 1.0))
        if g.get("reduction", 1) != 1:
            raise NoDraft("a loss that is not averaged")
        v = Value(a.shape, "real", lambda i: f"fabs({a.at(i)} - {b.at(i)})", "float32")
        return self.reduce(v, list(range(len(a.shape))), "0", f"{{a}} += {{v}} < {beta} ? 0.5 * {{v}} * {{v}} / {beta} : {{v}} - 0.5 * {beta};", "{a} / {n}")

    def op_nll_loss_forward(self, g, outs):
        v, t = self.of(g["self"]), self.of(g["target"])
        if isinstance(g.get("weight"), Ref) or g.get("reduction", 1) == 0:
            raise NoDraft("a weighted loss")
        rows = Value(t.shape, "real", lambda i: f"(-{v.at([*i, t.at(i)])})", "float32")
        return [self.reduce(rows, [0], "0", "{a} += {v};", "{a} / {n}" if g.get("reduction", 1) == 1 else "{a}"), None]

    def op_binary_cross_entropy(self, g, outs):
        raise NoDraft("its operator `binary_cross_entropy` has no plain form here")
