"""trace.py - what a reference does, as a list of torch's own operators, at several sizes at once.

The same reference at other sizes runs the same operators with other numbers.  Those that differ become
expressions over axes; where the operators themselves differ, there is no one kernel, and that is said.
SPDX-License-Identifier: Apache-2.0
"""
import math

from shapes import expression

MOST_OPERATORS = 400


class NoDraft(Exception):
    """Why there is no naive kernel."""


class Ref:
    """A tensor in a recording, by number."""

    def __init__(self, number, shape, dtype):
        self.number, self.shape, self.dtype = number, shape, dtype


class Recording:
    def __init__(self, torch, inputs):
        self.torch, self.refs, self.kept, self.ops, self.n = torch, {}, [], [], 0
        self.inputs = {name: self.ref(v) if hasattr(v, "shape") else v for name, v in inputs.items()}

    def ref(self, tensor):
        if id(tensor) not in self.refs:
            self.refs[id(tensor)] = Ref(self.n, tuple(tensor.shape), str(tensor.dtype).split(".")[-1])
            self.kept.append(tensor)    # no other may get its id
            self.n += 1
        return self.refs[id(tensor)]

    def known(self, value):
        if isinstance(value, self.torch.Tensor):
            if id(value) not in self.refs:
                if value.numel() == 1:
                    return value.item()
                raise NoDraft("it has a constant tensor of its own")
            return self.refs[id(value)]
        return type(value)(self.known(v) for v in value) if type(value) in (list, tuple) else value

    def made(self, value, fresh):
        if isinstance(value, self.torch.Tensor):
            if fresh:
                self.refs.pop(id(value), None)
            return self.ref(value)
        return type(value)(self.made(v, fresh) for v in value) if type(value) in (list, tuple) else value

    def run(self, function):
        from torch.utils._python_dispatch import TorchDispatchMode
        me = self

        class Mode(TorchDispatchMode):
            @classmethod
            def _should_skip_dynamo(cls):    # else torch imports its compiler at the first call, while names of it are replaced
                return False

            def __torch_dispatch__(self, operator, _types, args=(), kwargs=None):
                name = operator._schema.name.split("::")[-1]
                if len(me.ops) >= MOST_OPERATORS:
                    raise NoDraft(f"more than {MOST_OPERATORS} operators")
                before = me.known(list(args)), {k: me.known(v) for k, v in (kwargs or {}).items()}
                out = operator(*args, **(kwargs or {}))
                names = [a.name for a in operator._schema.arguments]
                in_place = name.endswith("_") and not name.startswith("_")
                me.ops.append((name.rstrip("_") if in_place else name, names, *before, me.made(out, in_place)))
                return out
        with Mode():
            returned = function()
        self.outputs = [self.known(v) for v in returned]
        return self


class Several:
    """Recordings at several points, read as one: numbers become text over the axes."""

    def __init__(self, recordings, points, names):
        self.points, self.names = points, names
        first = recordings[0]
        for other in recordings[1:]:
            if [o[0] for o in other.ops] != [o[0] for o in first.ops]:
                raise NoDraft("it does other things at other sizes")
        self.inputs = {n: self.joined([r.inputs[n] for r in recordings]) for n in first.inputs}
        self.ops = [(ops[0][0], ops[0][1], self.joined([o[2] for o in ops]), {k: self.joined([o[3].get(k) for o in ops]) for k in ops[0][3]},
                     self.joined([o[4] for o in ops])) for ops in zip(*(r.ops for r in recordings))]
        self.outputs = self.joined([r.outputs for r in recordings])

    def joined(self, values):
        first = values[0]
        if isinstance(first, Ref):
            if any(not isinstance(v, Ref) or v.number != first.number or len(v.shape) != len(first.shape) for v in values):
                raise NoDraft("its tensors have other ranks at other sizes")
            return Ref(first.number, [self.size([v.shape[d] for v in values]) for d in range(len(first.shape))], first.dtype)
        if type(first) in (list, tuple):
            if any(type(v) is not type(first) or len(v) != len(first) for v in values):
                raise NoDraft("it does other things at other sizes")
            return [self.joined([v[i] for v in values]) for i in range(len(first))]
        if type(first) is int:
            return first if len(set(values)) == 1 else Text(self.size(values))
        if type(first) is float and len(set(values)) > 1:
            return Text(self.real(values))
        return first

    def size(self, values):
        text = expression(list(values), self.points, self.names)
        if text is None:
            raise NoDraft(f"a size in it ({values[0]}) is no expression over the axes that was tried")
        return text

    def real(self, values):
        for name in self.names:
            for text, f in ((f"1 / {name}", lambda x: 1 / x), (f"sqrt({name})", math.sqrt), (f"1 / sqrt({name})", lambda x: 1 / math.sqrt(x)), (name, float)):
                if all(abs(v - f(p[name])) < 1e-12 * abs(v) for v, p in zip(values, self.points)):
                    return text.replace("1 /", "1.0 /")
        raise NoDraft("a number in it depends on sizes in a way that was not found")


class Text(str):
    """A number that is an expression over axes."""
