"""draft_elementwise.py - operators whose element is a formula of the elements beside it, and tensors made of nothing.
SPDX-License-Identifier: Apache-2.0
"""
from draft_formula import Value, c_text, kind_of, number
from trace import NoDraft, Ref, Text

UNARY = {
    "relu": "({x} > 0 ? {x} : 0)", "sigmoid": "sigmoid({x})", "tanh": "tanh({x})", "exp": "exp({x})", "log": "log({x})", "sqrt": "sqrt({x})",
    "rsqrt": "(1 / sqrt({x}))", "abs": "fabs({x})", "neg": "(-{x})", "reciprocal": "(1 / {x})", "erf": "erf({x})", "sin": "sin({x})", "cos": "cos({x})",
    "square": "({x} * {x})", "floor": "floor({x})", "ceil": "ceil({x})", "round": "rint({x})", "trunc": "trunc({x})", "log1p": "log1p({x})",
    "expm1": "expm1({x})", "log2": "log2({x})", "exp2": "exp2({x})", "silu": "({x} * sigmoid({x}))", "mish": "({x} * tanh(softplus({x})))",
    "hardswish": "({x} * fmin(fmax({x} + 3, 0), 6) / 6)", "hardsigmoid": "(fmin(fmax({x} + 3, 0), 6) / 6)", "log_sigmoid_forward": "(-softplus(-{x}))",
    "sign": "(({x} > 0) - ({x} < 0))", "isnan": "({x} != {x})", "logical_not": "(!{x})", "erfc": "erfc({x})", "atan": "atan({x})", "bitwise_not": "(~{x})",
    **{f: f + "({x})" for f in ("tan", "sinh", "cosh", "log10", "lgamma")}, "sgn": "(({x} > 0) - ({x} < 0))", "frac": "({x} - trunc({x}))",
    "arcsin": "asin({x})", "asin": "asin({x})", "acos": "acos({x})", "asinh": "asinh({x})", "acosh": "acosh({x})", "atanh": "atanh({x})",
    "isinf": "(fabs({x}) == INFINITY)", "sinc": "({x} == 0 ? 1 : sin(3.141592653589793 * {x}) / (3.141592653589793 * {x}))",
}
BINARY = {
    "mul": "({x} * {y})", "maximum": "({x} > {y} ? {x} : {y})", "minimum": "({x} < {y} ? {x} : {y})", "eq": "({x} == {y})", "ne": "({x} != {y})",
    "lt": "({x} < {y})", "le": "({x} <= {y})", "gt": "({x} > {y})", "ge": "({x} >= {y})", "logical_and": "({x} && {y})", "logical_or": "({x} || {y})",
    "bitwise_and": "({x} & {y})", "bitwise_or": "({x} | {y})", "bitwise_xor": "({x} ^ {y})", "fmod": "fmod({x}, {y})", "atan2": "atan2({x}, {y})",
    "bitwise_left_shift": "({x} << {y})", "__lshift__": "({x} << {y})", "__rshift__": "({x} >> {y})", "bitwise_right_shift": "({x} >> {y})",
    "__and__": "({x} & {y})", "__or__": "({x} | {y})", "fmax": "fmax({x}, {y})", "fmin": "fmin({x}, {y})", "hypot": "hypot({x}, {y})",
    "logaddexp": "(fmax({x}, {y}) + log1p(exp(-fabs({x} - {y}))))", "xlogy": "({x} == 0 ? 0 : {x} * log({y}))", "copysign": "copysign({x}, {y})",
    "logical_xor": "(!{x} != !{y})", "heaviside": "({x} > 0 ? 1 : {x} == 0 ? {y} : 0)",
}
SAME = ("clone", "alias", "detach", "lift_fresh", "lift_fresh_copy", "contiguous", "_reshape_alias_same", "dropout", "positive")


class Elementwise:
    def op_add(self, g, outs, sign="+"):
        alpha = g.get("alpha", 1)
        text = "({x} %s {y})" % sign if alpha in (1, None) else "({x} %s %s * {y})" % (sign, number(alpha))
        return self.each(text, [g["self"], g["other"]], outs[0])

    def op_sub(self, g, outs):
        return self.op_add(g, outs, "-")

    def op_rsub(self, g, outs):
        return self.each("({y} - {x})", [g["self"], g["other"]], outs[0])

    def op_div(self, g, outs):
        mode = g.get("rounding_mode")
        whole = kind_of(outs[0].dtype) != "real"
        text = {None: "((real){x} / {y})", "floor": "floor((double){x} / {y})", "trunc": "trunc((double){x} / {y})"}[mode]
        return self.each("({x} / {y})" if whole and mode else text, [g["self"], g["other"]], outs[0])

    def op_floor_divide(self, g, outs):
        return self.each("floor((double){x} / {y})", [g["self"], g["other"]], outs[0])

    def op_remainder(self, g, outs):
        whole = kind_of(outs[0].dtype) != "real"
        return self.each("mod({x}, {y})" if whole else "({x} - {y} * floor({x} / {y}))", [g["self"], g["other"]], outs[0])

    def op_pow(self, g, outs):
        power = g["exponent"]
        if power == 2:
            return self.each("({x} * {x})", [g["self"]], outs[0])
        return self.each("pow({x}, {y})", [g["self"], power], outs[0])

    def op_clamp(self, g, outs):
        low, high, text = g.get("min"), g.get("max"), "{x}"
        if low is not None:
            text = f"fmax({text}, {number(low)})"
        return self.each(text if high is None else f"fmin({text}, {number(high)})", [g["self"]], outs[0])

    op_hardtanh = lambda self, g, outs: self.op_clamp({"self": g["self"], "min": g.get("min_val", -1), "max": g.get("max_val", 1)}, outs)
    op_clamp_min = op_clamp
    op_clamp_max = op_clamp

    def op_gelu(self, g, outs):
        if g.get("approximate", "none") == "tanh":
            return self.each("(0.5 * {x} * (1 + tanh(0.7978845608028654 * ({x} + 0.044715 * {x} * {x} * {x}))))", [g["self"]], outs[0])
        return self.each("(0.5 * {x} * (1 + erf({x} * 0.7071067811865476)))", [g["self"]], outs[0])

    def op_elu(self, g, outs):
        a, s, i = (number(g.get(k, 1)) for k in ("alpha", "scale", "input_scale"))
        return self.each("(%s * ({x} > 0 ? {x} : %s * expm1({x} * %s)))" % (s, a, i), [g["self"]], outs[0])

    def op_leaky_relu(self, g, outs):
        return self.each("({x} > 0 ? {x} : {x} * %s)" % number(g.get("negative_slope", 0.01)), [g["self"]], outs[0])

    def op_softplus(self, g, outs):
        beta, top = number(g.get("beta", 1)), number(g.get("threshold", 20))
        return self.each("({x} * %s > %s ? {x} : log1p(exp({x} * %s)) / %s)" % (beta, top, beta, beta), [g["self"]], outs[0])

    def op_threshold(self, g, outs):
        return self.each("({x} > %s ? {x} : %s)" % (number(g["threshold"]), number(g["value"])), [g["self"]], outs[0])

    def op_logit(self, g, outs):
        eps, text = g.get("eps"), "{x}"
        if eps is not None:
            text = f"fmin(fmax({{x}}, {number(eps)}), 1 - {number(eps)})"
        return self.each(f"log({text} / (1 - {text}))", [g["self"]], outs[0])

    def op_nan_to_num(self, g, outs):
        most = {"float64": "1.7976931348623157e308"}.get(outs[0].dtype, "3.4028234663852886e38")
        nan, high, low = (number(g[k]) if g.get(k) is not None else text for k, text in (("nan", "0"), ("posinf", most), ("neginf", "-" + most)))
        return self.each("({x} != {x} ? %s : {x} == INFINITY ? %s : {x} == -INFINITY ? %s : {x})" % (nan, high, low), [g["self"]], outs[0])

    def op_addcdiv(self, g, outs):
        return self.each("({x} + %s * {y} / {z})" % number(g.get("value", 1)), [g["self"], g["tensor1"], g["tensor2"]], outs[0])

    def op_hardshrink(self, g, outs):
        return self.each("(fabs({x}) <= %s ? 0 : {x})" % number(g.get("lambd", 0.5)), [g["self"]], outs[0])

    def op_softshrink(self, g, outs):
        k = number(g.get("lambd", 0.5))
        return self.each("({x} > %s ? {x} - %s : {x} < -%s ? {x} + %s : 0)" % (k, k, k, k), [g["self"]], outs[0])

    def op_prelu_kernel(self, g, outs):
        return self.each("({x} > 0 ? {x} : {y} * {x})", [g["self"], g["weight"]], outs[0])

    def op_where(self, g, outs):
        return self.each("({x} ? {y} : {z})", [g["condition"], g["self"], g["other"]], outs[0])

    def op_masked_fill(self, g, outs):
        return self.each("({x} ? {y} : {z})", [g["mask"], g["value"], g["self"]], outs[0])

    def op_addcmul(self, g, outs):
        return self.each("({x} + %s * {y} * {z})" % number(g.get("value", 1)), [g["self"], g["tensor1"], g["tensor2"]], outs[0])

    def op_lerp(self, g, outs):
        return self.each("({x} + {z} * ({y} - {x}))", [g["self"], g["end"], g["weight"]], outs[0])

    def op_to_copy(self, g, outs):
        v = self.of(g["self"])
        kind, was = kind_of(outs[0].dtype), v.kind
        if outs[0].dtype.startswith("float8") or outs[0].dtype in ("int8", "uint8", "int16"):
            raise NoDraft(f"it rounds to {outs[0].dtype} on its way")
        text = "({x} != 0)" if outs[0].dtype == "bool" else "{x}" if kind == was else "(%s){x}" % kind
        return self.each(text, [g["self"]], outs[0])

    def op_copy(self, g, outs):
        return self.each("{x}", [g["src"]], outs[0])

    # -- made of nothing

    def filled(self, outs, text):
        return Value(self.shape(outs[0]), kind_of(outs[0].dtype), lambda i: text, outs[0].dtype)

    def op_zeros(self, g, outs):
        return self.filled(outs, "0")

    op_zeros_like = op_new_zeros = op_empty = op_empty_like = op_new_empty = op_zero = op_empty_strided = op_new_empty_strided = op_zeros

    def op_ones(self, g, outs):
        return self.filled(outs, "1")

    op_ones_like = op_new_ones = op_ones

    def op_full(self, g, outs):
        value = g.get("fill_value", g.get("value"))
        if isinstance(value, Ref):
            return self.each("{x}", [value], outs[0])
        return self.filled(outs, c_text(value) if isinstance(value, Text) else f"({number(value)})")

    op_full_like = op_new_full = op_fill = op_full

    def op_scalar_tensor(self, g, outs):
        return self.filled(outs, f"({number(g['s'])})")

    def op_arange(self, g, outs):
        start, step = g.get("start", 0) or 0, g.get("step", 1) or 1
        s, t = (c_text(v) if isinstance(v, Text) else number(v) for v in (start, step))
        return Value(self.shape(outs[0]), kind_of(outs[0].dtype), lambda i: f"({s} + {i[0]} * {t})", outs[0].dtype)

    def op_eye(self, g, outs):
        return Value(self.shape(outs[0]), kind_of(outs[0].dtype), lambda i: f"({i[0]} == {i[1]})", outs[0].dtype)

    def op_tril(self, g, outs, sign="<="):
        v, k = self.of(g["self"]), number(g.get("diagonal", 0))
        return self.formula(v.shape, v.kind, lambda i: f"({i[-1]} - {i[-2]} {sign} {k} ? {v.at(i)} : 0)", v.dtype)

    def op_triu(self, g, outs):
        return self.op_tril(g, outs, ">=")
