"""evaluator.py - expressions and plain statements of Python, evaluated without running any.

A condition that is not known is followed both ways.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import builtins
import itertools
import math
import re
import sys

from source import bound_names
from values import (
    Bind, COMPARED, CONCRETE, Config, Defined, Descriptor, Ended, Launched, MOST_ITEMS, Method, OPERATED, Outside,
    Partial, Real, Scope, Stop, Sym, Tensor, Unknown, Within, arithmetic, bounded, chosen, compared, growth, is_constant,
    is_integer, known, negated, real, settled, small_text, wrapped)
from tensors import tensor_attribute, tensor_method
from facts import flag_gems_call, flag_gems_name, flag_gems_shim, python_facts, torch_facts, triton_facts

MOST_STEPS = 200_000    # of the evaluator
NOT_READ = {"torch", "triton", "packaging", "numpy"}    # what is known of them stands below


class Evaluator:
    def __init__(self, modules, arch):
        self.modules, self.arch, self.steps, self.running = modules, arch, 0, set()
        self.cache, self.notes, self.tables, self.target = {}, [], [], None
        self.knows = [torch_facts, triton_facts, python_facts]

    # -- names

    def named(self, module, name):
        """The value of a module's name."""
        key = (module.name, name)
        if key in self.cache:
            return self.cache[key]
        if key in self.running:
            return Unknown("it is defined by itself")
        self.running.add(key)
        try:
            self.cache[key] = self.define(module, name)
        finally:
            self.running.discard(key)
        return self.cache[key]

    def define(self, module, name):
        special = flag_gems_name(module, name)
        if special:
            return special
        undecided, added = [], []
        for conditions, node in reversed(module.bound.get(name, [])):
            truths = [self.holds(module, test, wanted) for test, wanted in conditions]
            if all(t is True for t in truths) and isinstance(node, ast.AugAssign):
                added.insert(0, node)
            elif all(t is True for t in truths):
                value = self.definition(module, name, node)
                for n in added:
                    value = self.binary(type(n.op), value, self.value(n.value, Scope(module, {})))
                return value
            if not any(t is False for t in truths):
                undecided.append((conditions, node))
        if undecided:
            conditions, node = undecided[-1]
            self.notes.append(f"{name}: of its definitions in {module.name} the one of line {node.lineno} is "
                              f"taken; what it depends on (line {conditions[-1][0].lineno}) is not known here")
            return self.definition(module, name, node)
        sub = self.modules.find(f"{module.name}.{name}") if module.package else None
        return Within(sub) if sub else KeyError

    def holds(self, module, test, wanted):
        truth = self.imports(test) if isinstance(test, ast.Try) else self.truth(self.value(test, Scope(module, {})))
        return truth if truth is None else truth is wanted

    def imports(self, node):
        """Does the body of a `try` find what it imports?  That is what it is there for."""
        names = [a.name for n in node.body if isinstance(n, ast.Import) for a in n.names]
        names += [n.module for n in node.body if isinstance(n, ast.ImportFrom) and not n.level]
        return all(self.is_there(n.split(".")[0]) for n in names)

    def is_there(self, top):
        return top in NOT_READ or top in sys.stdlib_module_names or self.modules.find(top) is not None

    def definition(self, module, name, node):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            return flag_gems_shim(self, module, node) or Defined(module, node)
        if isinstance(node, ast.Import):
            found = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
            return self.imported(found.name if found.asname else name)
        if isinstance(node, ast.ImportFrom):
            found = next(a for a in node.names if (a.asname or a.name) == name)
            of = self.imported(module.absolute(node))
            if isinstance(of, Within) and of.module is module:    # of a package, one of its own modules
                return self.imported(f"{module.name}.{found.name}")
            return self.member(of, found.name)
        scope = Scope(module, {})
        self.assign(node, scope)
        return scope.names.get(name, Unknown())

    def imported(self, name):
        top = name.split(".")[0]
        if top in NOT_READ or top in sys.stdlib_module_names:
            return Outside(name)
        found = self.modules.find(name)
        return Within(found) if found else Outside(name)

    def member(self, value, name):
        if isinstance(value, Within):
            found = self.named(value.module, name)
            return Unknown(f"{value.module.name} has no {name}") if found is KeyError else found
        if isinstance(value, Outside):
            for facts in self.knows:
                fact = facts(self, f"{value.name}.{name}", None, {})
                if fact is not None:
                    return fact[0]
            return Outside(f"{value.name}.{name}")
        return self.attribute(value, name)

    # -- expressions

    def value(self, node, scope):
        self.steps += 1
        if self.steps > MOST_STEPS:
            return Unknown("it takes too many steps to tell")
        method = getattr(self, "of_" + type(node).__name__, None)
        return method(node, scope) if method else Unknown()

    def of_Constant(self, node, scope):
        return node.value

    def of_Name(self, node, scope):
        found = scope.get(node.id)
        if found is KeyError:
            found = self.named(scope.module, node.id)
        if found is not KeyError:
            return found
        return Outside(f"builtins.{node.id}") if hasattr(builtins, node.id) else Unknown(f"'{node.id}' is not defined")

    def of_Attribute(self, node, scope):
        return self.member(self.value(node.value, scope), node.attr)

    def several(self, nodes, scope):
        out = []
        for node in nodes:
            value = self.value(node.value if isinstance(node, ast.Starred) else node, scope)
            if isinstance(node, ast.Starred) and isinstance(value, (list, tuple)):
                out += value
            else:
                out.append(Unknown() if isinstance(node, ast.Starred) else value)
        return out

    def of_Tuple(self, node, scope):
        return tuple(self.several(node.elts, scope))

    def of_List(self, node, scope):
        return self.several(node.elts, scope)

    of_Set = of_List

    def of_Dict(self, node, scope):
        out = {}
        for key, value in zip(node.keys, node.values):
            value = self.value(value, scope)
            if key is None and isinstance(value, dict):
                out.update(value)
            elif key is not None and isinstance(key := self.value(key, scope), (str, int, Outside, tuple)):
                out[key] = value
        return out

    def of_Lambda(self, node, scope):
        return Defined(scope.module, node, scope)

    def of_JoinedStr(self, node, scope):
        parts = [self.value(p.value if isinstance(p, ast.FormattedValue) else p, scope) for p in node.values]
        plain = all(not isinstance(p, ast.FormattedValue) or p.format_spec is None and p.conversion < 0 for p in node.values)
        return "".join(map(str, parts)) if plain and all(isinstance(p, (str, int, float)) for p in parts) else Unknown()

    def of_NamedExpr(self, node, scope):
        scope.names[node.target.id] = value = self.value(node.value, scope)
        return value

    def of_UnaryOp(self, node, scope):
        value = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            if truth is None:
                return negated(self.as_truth(value)) if isinstance(value, Sym) else Unknown()
            return not truth
        if isinstance(value, Sym) and isinstance(node.op, ast.USub):
            return Sym(f"0 - {wrapped(value.text)}")
        if isinstance(value, (int, float)):
            return -value if isinstance(node.op, ast.USub) else value if isinstance(node.op, ast.UAdd) else ~value
        return Unknown()

    def of_BinOp(self, node, scope):
        return self.binary(type(node.op), self.value(node.left, scope), self.value(node.right, scope))

    def binary(self, kind, a, b):
        whole = is_integer(a) and is_integer(b) and kind is not ast.Div and not (kind is ast.Pow and isinstance(b, int) and b < 0)
        if any(isinstance(v, (Sym, Real)) for v in (a, b)) and not whole:
            return real(kind, a, b) or Unknown("a number that directives cannot say")
        if isinstance(a, Sym) and is_integer(b) or isinstance(b, Sym) and is_integer(a):
            if kind in OPERATED:
                return arithmetic(OPERATED[kind], a, b)
            if kind in (ast.BitAnd, ast.BitOr) and all(isinstance(v, (bool, Sym)) for v in (a, b)):
                return self.both(kind is ast.BitAnd, a, b)
            return Unknown("an integer that directives cannot say")
        if kind in CONCRETE and all(isinstance(v, (int, float, str, tuple, list)) for v in (a, b)):
            try:
                return bounded(lambda: CONCRETE[kind](a, b), growth(kind, a, b))
            except (TypeError, ValueError, ArithmeticError):
                return Unknown()
        if kind is ast.Pow and all(isinstance(v, (int, float)) for v in (a, b)):
            try:
                return bounded(lambda: a ** b, abs(a) ** min(abs(b), 64) if abs(a) < 1 << 32 else math.inf)
            except ArithmeticError:
                return Unknown()
        return Unknown()

    def both(self, every, a, b):
        for one, other in ((a, b), (b, a)):
            truth = self.truth(one)
            if truth is not None:
                return other if truth is every else truth
        if isinstance(a, Sym) and isinstance(b, Sym):
            return Sym(f"{wrapped(a.text)} {'&&' if every else '||'} {wrapped(b.text)}", truth=True)
        return Unknown()

    def of_BoolOp(self, node, scope):
        every, result = isinstance(node.op, ast.And), None
        for i, part in enumerate(node.values):
            value = self.value(part, scope)
            result = value if i == 0 else self.both(every, result, value)
            if self.truth(value) is (not every):
                return value
        return result

    def of_Compare(self, node, scope):
        left, result = self.value(node.left, scope), True
        for op, right in zip(node.ops, node.comparators):
            right = self.value(right, scope)
            result = self.both(True, result, self.compare(op, left, right))
            left = right
        return result

    def compare(self, op, a, b):
        if isinstance(op, (ast.Is, ast.IsNot)) or isinstance(a, (Outside, type(None))) or isinstance(b, (Outside, type(None))):
            if isinstance(a, Unknown) or isinstance(b, Unknown):
                return Unknown()
            if isinstance(op, (ast.Is, ast.Eq, ast.IsNot, ast.NotEq)):
                same = a is b or (known(a) and known(b) and type(a) is type(b) and a == b) or \
                    (isinstance(a, Tensor) and isinstance(b, Tensor) and a.base is b.base and a.shape == b.shape)
                return same if isinstance(op, (ast.Is, ast.Eq)) else not same
        if isinstance(op, (ast.In, ast.NotIn)):
            return self.contains(op, a, b)
        if type(op) not in COMPARED:
            return Unknown()
        if isinstance(a, Sym) and is_integer(b) or isinstance(b, Sym) and is_integer(a):
            return compared(COMPARED[type(op)], a, b)
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and not (known(a) and known(b)):
            same = len(a) == len(b) and all(x == y for x, y in zip(a, b))
            return same if isinstance(op, ast.Eq) else not same if isinstance(op, ast.NotEq) else Unknown()
        try:
            return CONCRETE[type(op)](a, b) if known(a) and known(b) else Unknown()
        except TypeError:
            return Unknown()

    def contains(self, op, a, b):
        if not known(a) or not isinstance(b, (list, tuple, dict, str)) or isinstance(b, str) and not isinstance(a, str):
            return Unknown()
        if any(isinstance(v, (Unknown, Sym)) for v in (b if not isinstance(b, dict) else ())):
            return Unknown()
        return (a in b) is isinstance(op, ast.In)

    def of_IfExp(self, node, scope):
        condition = self.value(node.test, scope)
        truth = self.truth(condition)
        if truth is not None:
            return self.value(node.body if truth else node.orelse, scope)
        a, b = self.value(node.body, scope), self.value(node.orelse, scope)
        if isinstance(condition, Sym) and is_integer(a) and is_integer(b):
            return chosen(self.as_truth(condition), a, b)
        if known(a) and not isinstance(a, Unknown) and isinstance(a, (list, tuple)):
            self.notes.append(f"line {node.lineno} of {scope.module.name}: what its choice depends on is not known "
                              f"here; its first side is taken")
            return a
        return Unknown()

    def as_truth(self, condition):
        return condition if condition.truth else compared("!=", condition, 0)

    def truth(self, value):
        """True, False or None."""
        if isinstance(value, Sym):
            return None
        if isinstance(value, (Tensor, Outside, Defined, Within, Method)):
            return True
        if isinstance(value, (Unknown, Real)) or value is KeyError:
            return None
        return bool(value)

    def of_Subscript(self, node, scope):
        of, index = self.value(node.value, scope), self.value(node.slice, scope)
        if isinstance(of, Defined) and isinstance(of.node, ast.FunctionDef):
            return Method(of, index)    # kernel[grid]
        if isinstance(of, Defined) and isinstance(index, str):    # a member of an enumeration
            return self.attribute(of, index)
        if isinstance(of, Tensor):
            return self.taken(of, node.slice)
        if isinstance(of, dict):
            return of.get(index, Unknown(f"nothing is called {index!r}")) if known(index) else Unknown()
        if isinstance(of, (tuple, list, str)):
            try:
                return of[self.span(node.slice, scope) if isinstance(node.slice, ast.Slice) else index]
            except (TypeError, IndexError, ValueError):
                return Unknown()
        return Unknown()

    def span(self, node, scope):
        parts = [None if p is None else self.value(p, scope) for p in (node.lower, node.upper, node.step)]
        if not all(p is None or isinstance(p, int) for p in parts):
            raise ValueError
        return slice(*parts)

    def taken(self, t, index):
        """`t[None]`, `t[..., None]` and the like keep the data; anything else is not followed."""
        return Unknown("a part of a tensor")

    def comprehended(self, node, scope, add):
        inner = Scope(scope.module, {}, scope)

        def loop(generators):
            if not generators:
                return add(inner)
            values = self.value(generators[0].iter, inner)
            if not isinstance(values, (list, tuple, dict)):
                raise LookupError
            for v in list(values):
                self.bind(generators[0].target, v, inner)
                truths = [self.truth(self.value(c, inner)) for c in generators[0].ifs]
                if None in truths:
                    raise LookupError
                if all(truths):
                    loop(generators[1:])

        try:
            loop(node.generators)
        except LookupError:
            return False
        return True

    def of_ListComp(self, node, scope):
        out = []
        done = self.comprehended(node, scope, lambda s: out.append(self.value(node.elt, s)))
        return out if done else Unknown()

    of_GeneratorExp = of_SetComp = of_ListComp

    def of_DictComp(self, node, scope):
        out = {}
        def add(s):
            key = self.value(node.key, s)
            if known(key):
                out[key] = self.value(node.value, s)
        return out if self.comprehended(node, scope, add) else Unknown()

    # -- calls

    def of_Call(self, node, scope):
        function = self.value(node.func, scope)
        values, named = self.several(node.args, scope), {}
        for k in node.keywords:
            value = self.value(k.value, scope)
            if k.arg:
                named[k.arg] = value
            elif isinstance(value, dict):
                named.update(value)
        return self.call(function, values, named, scope, node)

    def call(self, function, values, named, scope, node):
        if isinstance(function, Method) and isinstance(function.of, Defined):
            scope.launches.append(Launched(function.of, function.name, values, named, node))
            return None
        if isinstance(function, Outside):
            for facts in self.knows:
                fact = facts(self, function.name, values, named)
                if fact is not None:
                    return fact[0]
            return Unknown(f"{function.name}(...)")
        if isinstance(function, Partial):
            return self.call(function.function, [*function.values, *values], {**function.named, **named}, scope, node)
        if isinstance(function, Method):
            return self.method(function.of, function.name, values, named)
        if isinstance(function, Defined):
            return self.run(function, values, named, scope)
        return Unknown()

    def run(self, function, values, named, scope):
        """A call of a function that is read; what it launches is the caller's."""
        node = function.node
        table = flag_gems_call(self, function, values)
        if table:
            return table[0]
        if isinstance(node, ast.ClassDef) or is_kernel(self, function) or len(self.running) > 40:
            return Unknown(f"{getattr(node, 'name', 'it')}(...)")
        inner = Scope(function.module, self.arguments(function, [*function.first, *values], named), function.around)
        if isinstance(node, ast.Lambda):
            return self.value(node.body, inner)
        key = (function.module.name, node.name, len(self.running))
        self.running.add(key)
        try:
            ended = self.execute(list(node.body), inner)
        finally:
            self.running.discard(key)
        scope.launches += ended.launches
        scope.assumed += ended.assumed
        return ended.value

    def arguments(self, function, values, named):
        a, out = function.node.args, {}
        names = [p.arg for p in a.posonlyargs + a.args]
        defaults = Scope(function.module, {}, function.around)
        for name, default in itertools.chain(zip(names[len(names) - len(a.defaults):], a.defaults),
                                             ((p.arg, d) for p, d in zip(a.kwonlyargs, a.kw_defaults) if d)):
            out[name] = self.value(default, defaults)
        out.update(zip(names, values))
        if a.vararg:
            out[a.vararg.arg] = tuple(values[len(names):])
        extra = {k: v for k, v in named.items() if k not in names + [p.arg for p in a.kwonlyargs]}
        out.update({k: v for k, v in named.items() if k not in extra})
        if a.kwarg:
            out[a.kwarg.arg] = extra
        for p in names + [p.arg for p in a.kwonlyargs]:
            out.setdefault(p, Unknown(f"parameter '{p}'"))
        return out

    # -- statements

    def execute(self, statements, scope):
        """To the end of the list.  A condition that is not known is followed both ways, with all that comes after
        it: statements are taken off the front of the list, and the body of an `if` is put there."""
        while statements:
            self.steps += 1
            if self.steps > MOST_STEPS:
                return Ended(Unknown("it takes too many steps to tell"), scope.launches, scope.assumed)
            node, statements = statements[0], statements[1:]
            if isinstance(node, Bind):
                self.bind(node.target, node.value, scope)
            elif isinstance(node, ast.Return):
                value = self.value(node.value, scope) if node.value else None
                return Ended(value, scope.launches, scope.assumed)
            elif isinstance(node, ast.If):
                condition = self.value(node.test, scope)
                truth = self.truth(condition)
                if isinstance(condition, Sym):
                    truth = settled(self.as_truth(condition), [a.text for a in scope.assumed if isinstance(a, Sym)])
                if truth is None:
                    return self.fork(node, condition, statements, scope)
                statements = (node.body if truth else node.orelse) + statements
            elif isinstance(node, ast.Try) and not self.imports(node) and node.handlers:
                statements = node.handlers[0].body + statements
            elif isinstance(node, (ast.With, ast.Try)):
                statements = node.body + statements
            elif isinstance(node, ast.For):
                statements = self.unrolled(node, scope) + statements
            elif isinstance(node, ast.Raise):
                raise Stop
            elif isinstance(node, ast.Assert):
                if self.refuted(node.test, scope):
                    raise Stop
            elif isinstance(node, ast.While):
                for n in ast.walk(node):
                    if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                        scope.names[n.id] = Unknown("a loop decides it")
            else:
                self.assign(node, scope)
        return Ended(None, scope.launches, scope.assumed)

    def refuted(self, test, scope):
        """An assertion that does not hold; two axes of a task with different names are different sizes."""
        value = self.value(test, scope)
        if isinstance(value, Sym) and isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
            return bool(re.fullmatch(r"\w+ == \w+", value.text))
        return self.truth(value) is False

    def fork(self, node, condition, rest, scope):
        ways = []
        for body, holds in ((node.body, True), (node.orelse, False)):
            inner = scope.fork()
            if isinstance(condition, Sym):
                truth = self.as_truth(condition)
                inner.assumed.append(truth if holds else negated(truth))
            else:
                inner.assumed.append(f"line {node.lineno} of {scope.module.name}: its condition "
                                     f"{'holds' if holds else 'does not hold'}")
            try:
                ways.append(self.execute(body + rest, inner))
            except Stop:
                continue
        if not ways:
            raise Stop
        if len(ways) == 1:
            return ways[0]
        return self.joined(condition, ways[0], ways[1], scope)

    def joined(self, condition, a, b, scope):
        """Two ways through a function as one; that which launches the kernel.  Where both do, not the way of a size
        that is one number: that is the special case."""
        hits = [any(l.kernel.node is self.target for l in w.launches) for w in (a, b)]
        special = getattr(condition, "inverse", ("",))[0] == "!="
        if any(hits):
            return a if hits[0] and not (hits[1] and special) else b
        value = self.merged(condition, a.value, b.value)
        return Ended(value, scope.launches, scope.assumed)

    def merged(self, condition, a, b):
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return tuple(self.merged(condition, x, y) for x, y in zip(a, b))
        if type(a) is type(b) and known(a) and a == b:
            return a
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.base is b.base and a.shape == b.shape:
            return a
        if isinstance(condition, Sym) and is_integer(a) and is_integer(b):
            return chosen(self.as_truth(condition), a, b)
        return Unknown("two ways through the code differ in it")

    def unrolled(self, node, scope):
        values = self.value(node.iter, scope)
        if not isinstance(values, (list, tuple, dict)) or len(values) > 4096:
            for n in ast.walk(node):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    scope.names[n.id] = Unknown("a loop decides it")
            return []
        return [s for v in values for s in [Bind(node.target, v)] + node.body]

    def assign(self, node, scope):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            value = self.value(node.value, scope)
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                self.bind(target, value, scope)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            before = self.value(ast.Name(node.target.id, ast.Load()), scope)
            scope.names[node.target.id] = self.binary(type(node.op), before, self.value(node.value, scope))
        elif isinstance(node, ast.FunctionDef):
            scope.names[node.name] = Defined(scope.module, node, scope)
        elif isinstance(node, ast.Expr):
            self.value(node.value, scope)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for name in bound_names(node):
                scope.names[name] = self.definition(scope.module, name, node)

    def bind(self, target, value, scope):
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            star = next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
            fits = isinstance(value, (tuple, list)) and (len(value) == len(target.elts) or
                                                         star is not None and len(value) >= len(target.elts) - 1)
            if not fits:
                value = [Unknown()] * len(target.elts)
            elif star is not None:
                n = len(value) - len(target.elts) + 1
                value = list(value[:star]) + [list(value[star:star + n])] + list(value[star + n:])
            for t, v in zip(target.elts, value):
                self.bind(t.value if isinstance(t, ast.Starred) else t, v, scope)
        elif isinstance(target, ast.Subscript):
            of, index = self.value(target.value, scope), self.value(target.slice, scope)
            if isinstance(of, dict) and known(index):
                of[index] = value
        elif isinstance(target, ast.Attribute) and target.attr == "block_shape":
            of = self.value(target.value, scope)
            if isinstance(of, Descriptor):
                of.block_shape = value

    # -- values of the wrapper

    def attribute(self, v, name):
        if isinstance(v, Tensor):
            return tensor_attribute(v, name)
        if isinstance(v, Descriptor) and name in ("shape", "strides", "block_shape", "base"):
            return v.tensor if name == "base" else getattr(v, name)
        if isinstance(v, Config):
            return dict(v) if name == "kwargs" else v.options.get(name, Unknown())
        if name == "multi_processor_count":
            return Sym("sms")
        if name == "value" and (is_constant(v) or isinstance(v, Sym)):    # of a tl.constexpr
            return v
        if isinstance(v, (list, dict, str, int, tuple, Sym)) and not isinstance(v, bool):
            return Method(v, name)
        if isinstance(v, Defined) and isinstance(v.node, ast.ClassDef):
            if name == "apply":    # of torch.autograd.Function
                forward = self.attribute(v, "forward")
                return Defined(v.module, forward.node, first=(Unknown("the context of autograd"),)) \
                    if isinstance(forward, Defined) else Unknown()
            for n in v.node.body:
                if name in bound_names(n):
                    of_class = isinstance(n, ast.FunctionDef) and "classmethod" in map(ast.unparse, n.decorator_list)
                    return Defined(v.module, n, first=(v,)) if of_class else self.definition(v.module, name, n)
        return Unknown(getattr(v, "why", None) or f".{name}")

    def method(self, of, name, values, named):
        if isinstance(of, Tensor):
            return tensor_method(self, of, name, values, named)
        if isinstance(of, list) and name in ("append", "extend") and len(values) == 1 and len(of) < MOST_ITEMS:
            of.extend(values[0] if name == "extend" and isinstance(values[0], (list, tuple)) else values)
            return None
        if isinstance(of, dict):
            if name == "get" and values and known(values[0]):
                return of.get(values[0], values[1] if len(values) > 1 else None)
            if name in ("items", "keys", "values"):
                return [tuple(i) if name == "items" else i for i in getattr(of, name)()]
            if name == "copy":
                return dict(of)
            if name == "update" and values and isinstance(values[0], dict):
                return of.update(values[0])
        plain = {"bit_length", "lower", "upper", "startswith", "endswith", "split", "strip", "replace", "index", "join", "format"}
        if name in plain and isinstance(of, (str, int, list, tuple)) and known(values) and known(named):
            if name in ("replace", "join", "format") and not small_text(of, values, named):
                return Unknown("it grows too large")
            try:
                return getattr(of, name)(*values, **named)
            except (AttributeError, TypeError, ValueError, LookupError):
                return Unknown()
        return Unknown(f".{name}(...)")


def is_kernel(evaluator, function):
    node = function.node
    return isinstance(node, ast.FunctionDef) and jit_decorator(evaluator, function.module, node) is not None


def jit_decorator(evaluator, module, node):
    """The decorator that is Triton's jit, or None."""
    for d in node.decorator_list:
        value = evaluator.value(d.func if isinstance(d, ast.Call) else d, Scope(module, {}))
        if isinstance(value, Outside) and value.name in ("triton.jit", "triton.runtime.jit", "triton.runtime.jit.jit"):
            return d
    return None


# Each of these gets a dotted name, and the arguments where it is called; it answers with a tuple of one
# value, or None where it knows nothing.

def is_constexpr(e, module, a):
    if a.annotation is None:
        return False
    value = e.value(a.annotation, Scope(module, {}))
    text = value if isinstance(value, str) else value.name if isinstance(value, Outside) else ""
    return text.split(".")[-1] == "constexpr"
