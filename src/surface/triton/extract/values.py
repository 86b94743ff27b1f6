"""values.py - what the evaluator computes with: integers over the axes of a task, tensors known by shape,
names of packages that are not read, and "unknown", which says why.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import math
import operator
import re


class Unknown:
    """What cannot be told without running; absorbs what is done with it."""

    def __init__(self, why="a value that only running it would tell"):
        self.why = why


class Outside:
    """A dotted name of a package that is not read: torch, triton, operator ..."""

    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Outside) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name


class Within:
    """A module that is read."""

    def __init__(self, module):
        self.module = module


class Defined:
    """A function or class of a module, or a function inside one with the names around it."""

    def __init__(self, module, node, around=None, first=()):
        self.module, self.node, self.around, self.first = module, node, around, first


class Method:
    def __init__(self, of, name):
        self.of, self.name = of, name


class Partial:
    """functools.partial."""

    def __init__(self, function, values, named):
        self.function, self.values, self.named = function, values, named


class Sym:
    """An integer expression of directives; `factors` are those of a plain product."""

    def __init__(self, text, factors=None, truth=False):
        self.text, self.truth = text, truth
        self.factors = factors if factors is not None else (text,)

    def __eq__(self, other):
        return isinstance(other, Sym) and self.text == other.text

    def __hash__(self):
        return hash(self.text)


class Real:
    """An expression of real numbers, for a let with a type."""

    def __init__(self, text):
        self.text = text


class Tensor:
    """Known by shape; `name` is that of a tensor of the task, or None where a wrapper made it."""

    def __init__(self, name, shape, dtype, strides=None, base=None, zero=False):
        self.name, self.shape, self.dtype, self.zero = name, list(shape), dtype, zero
        self.base = base or self
        self.strides = strides if strides is not None else row_major(self.shape)


class Descriptor:
    """A TensorDescriptor of the host."""

    def __init__(self, tensor, shape, strides, block):
        self.tensor, self.shape, self.strides, self.block_shape = tensor, list(shape), list(strides), block


class Config(dict):
    """One configuration of an autotuner: constants, and the options of a launch."""


class Launched:
    def __init__(self, kernel, grid, values, named, node):
        self.kernel, self.grid, self.values, self.named, self.node = kernel, grid, values, named, node


def known(value):
    return value is None or isinstance(value, (bool, int, float, str, Outside)) or \
        isinstance(value, (tuple, list)) and all(map(known, value)) or \
        isinstance(value, dict) and all(map(known, value.values()))


def is_integer(value):
    return isinstance(value, (int, Sym))


def wrapped(text):
    """With parentheses, unless it is a name, a number or a call."""
    inside = re.fullmatch(r"\w+\((.*)\)", text)
    depth = [0]
    for c in inside[1] if inside else "":
        depth.append(depth[-1] + (c == "(") - (c == ")"))
    return text if text.isidentifier() or text.isdigit() or inside and min(depth) >= 0 else f"({text})"


def text_of(value):
    return value.text if isinstance(value, Sym) else str(int(value))


def product(factors):
    number = math.prod(f for f in factors if isinstance(f, int))
    names = sorted(f for f in factors if not isinstance(f, int))
    if not names or number == 0:
        return number
    parts = ([str(number)] if number != 1 else []) + [wrapped(n) for n in names]
    return Sym(" * ".join(parts) if len(parts) > 1 else names[0],
               tuple(names) + ((number,) if number != 1 else ()))


def factors_of(value):
    return value.factors if isinstance(value, Sym) else (int(value),)


def divided(a, b):
    """a // b where it is exact as text, else None."""
    rest = list(factors_of(a))
    for f in factors_of(b):
        if f in rest:
            rest.remove(f)
        else:
            number = next((r for r in rest if isinstance(r, int) and isinstance(f, int) and f and r % f == 0), None)
            if number is None and f != 1:
                return None
            if number is not None:
                rest.remove(number)
                rest.append(number // f)
    return product(rest)


def row_major(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step = arithmetic("*", step, size) if is_integer(step) and is_integer(size) else Unknown()
    return strides


COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
OPERATED = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
CONCRETE = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
            ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift,
            ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
            ast.BitXor: operator.xor, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
            ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne}


def arithmetic(sign, a, b):
    """Two integers of which one at least is symbolic."""
    if not (isinstance(a, Sym) or isinstance(b, Sym)):
        return {"+": operator.add, "-": operator.sub, "*": operator.mul}[sign](a, b)
    if sign == "*":
        return product(factors_of(a) + factors_of(b))
    if sign == "//":
        exact = divided(a, b) if b != 0 else None
        return exact if exact is not None else Sym(f"{wrapped(text_of(a))} / {wrapped(text_of(b))}")
    if sign == "+" and (a == 0 or b == 0):
        return b if a == 0 else a
    if sign == "-" and (b == 0 or a == b):
        return a if b == 0 else 0
    if sign == "%" and divided(a, b) is not None:
        return 0
    return Sym(f"{wrapped(text_of(a))} {sign} {wrapped(text_of(b))}")


REAL = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


def real(kind, *values):
    """What a let with a type can say, or None: numbers, and of integers only sums and products of names."""
    said = []
    for v in values:
        if isinstance(v, Sym) and not v.truth and re.fullmatch(r"[\w +*()-]+", v.text) and not re.search(r"\w\(", v.text) or isinstance(v, Real):
            said.append(wrapped(v.text))
        elif isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v):
            said.append(repr(v) if v >= 0 else f"({v!r})")
        else:
            return None
    return Real(f" {REAL[kind]} ".join(said)) if kind in REAL else None


INVERSE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def compared(sign, a, b):
    """Sizes are at least 1, and no smaller power of two is at least the size itself."""
    if a == b or sign in ("<=", ">") and text_of(b) == f"pow2({text_of(a)})":
        return sign in ("<=", ">=", "==")
    if b == 0 and re.fullmatch(r"\w+( \* \w+)*", a.text):
        return sign in ("!=", ">", ">=")
    result = Sym(f"{wrapped(text_of(a))} {sign} {wrapped(text_of(b))}", truth=True)
    result.inverse = (INVERSE[sign], a, b)
    return result


def negated(condition):
    inverse = getattr(condition, "inverse", None)
    return compared(*inverse) if inverse else Sym(f"{wrapped(condition.text)} == 0", truth=True)


def settled(condition, assumed):
    """True or False where that follows from one of `assumed`, texts; else None."""
    return True if condition.text in assumed else False if negated(condition).text in assumed else None


def chosen(condition, a, b):
    """a where the condition holds, else b; both are integers."""
    if a == b and type(a) is type(b):
        return a
    if b in (0, False) and a in (1, True):
        return condition
    one, other = wrapped(condition.text), wrapped(text_of(a))
    return Sym(f"{one} * {other} + (1 - {one}) * {wrapped(text_of(b))}")


class Stop(Exception):
    """A path that a wrapper does not take: it raises there, or an assertion does not hold."""


class Ended:
    """How a list of statements ended: a value was returned, and these kernels were launched."""

    def __init__(self, value, launches, assumed):
        self.value, self.launches, self.assumed = value, launches, assumed


class Scope:
    def __init__(self, module, names, around=None, launches=None, assumed=None):
        self.module, self.names, self.around = module, names, around
        self.launches, self.assumed = launches or [], assumed or []

    def fork(self):
        copied = {k: list(v) if type(v) is list else dict(v) if type(v) is dict else v
                  for k, v in self.names.items()}
        return Scope(self.module, copied, self.around, list(self.launches), list(self.assumed))

    def get(self, name):
        scope = self
        while scope:
            if name in scope.names:
                return scope.names[name]
            scope = scope.around
        return KeyError


class Bind:
    """A statement of ours: the target of a loop gets its next value."""

    def __init__(self, target, value):
        self.target, self.value = target, value


DTYPES = {"float": "float32", "half": "float16", "double": "float64", "int": "int32", "long": "int64"}


def small_text(of, values, named):
    """A width in a format, and a text put in for each letter of another, make much of little."""
    lengths = [len(str(v)) for v in [of, *values, *named.values()]]
    return not re.search(r"{[^}]*[:!.\[]", str(of)) and math.prod(n + 1 for n in lengths) < 1 << 20


MOST_NUMBER, MOST_ITEMS = 1 << 64, 1 << 16    # what a value may grow to


def growth(kind, a, b):
    """How large a result may become, as a number or as items."""
    sizes = [v if isinstance(v, (int, float)) else len(v) * (MOST_NUMBER // MOST_ITEMS) for v in (a, b)]
    if kind is ast.LShift:
        return abs(a) << min(abs(b), 128) if isinstance(b, int) else math.inf
    return abs(sizes[0] * sizes[1]) if kind is ast.Mult else max(map(abs, sizes)) * 2


def bounded(make, most):
    return make() if most <= MOST_NUMBER else Unknown("it grows too large")


def dtype_name(value):
    if isinstance(value, Outside) and value.name.split(".")[0] in ("torch", "triton"):
        name = value.name.split(".")[-1]
        return DTYPES.get(name, name)
    return None


def two(name, concrete, a, b):
    if not (isinstance(a, Sym) or isinstance(b, Sym)):
        return concrete(a, b) if b or name != "cdiv" else Unknown()
    if name == "cdiv" and divided(a, b) is not None:
        return divided(a, b)
    return a if a == b and name != "cdiv" else Sym(f"{name}({text_of(a)}, {text_of(b)})")


def fold(name, concrete, values):
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        values = values[0]
    if values and all(isinstance(v, (int, float)) for v in values):
        return concrete(values)
    if not values or not all(map(is_integer, values)):
        return Unknown()
    result = values[0]
    for v in values[1:]:
        result = two(name, lambda a, b: concrete((a, b)), result, v)
    return result


def is_constant(value):
    return value is None or isinstance(value, (bool, int, float, str)) or \
        isinstance(value, (tuple, list)) and all(map(is_constant, value))


SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "int32": "i32", "int64": "i64",
         "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "bool"}
