"""tensors.py - the methods of a tensor that a wrapper uses, on shapes and strides.
SPDX-License-Identifier: Apache-2.0
"""

from values import (
    Method, Outside, Tensor, Unknown, arithmetic, divided, dtype_name, factors_of, is_integer, product,
    row_major)


def tensor_attribute(t, name):
    plain = {"shape": lambda: tuple(t.shape), "ndim": lambda: len(t.shape), "is_cuda": lambda: True,
             "dtype": lambda: Outside(f"torch.{t.dtype}"), "device": lambda: Outside("torch.device"),
             "requires_grad": lambda: False, "is_contiguous": None, "data": lambda: t,
             "T": lambda: permuted(t, range(len(t.shape) - 1, -1, -1)), "mT": lambda: transposed(t, -2, -1)}
    return plain[name]() if plain.get(name) else Method(t, name)


def elements(t):
    total = 1
    for s in t.shape:
        total = arithmetic("*", total, s) if is_integer(s) and is_integer(total) else Unknown()
    return total


def is_contiguous(t):
    return all(s == r or n == 1 for s, r, n in zip(t.strides, row_major(t.shape), t.shape))


def permuted(t, order):
    order = list(order)
    return Tensor(t.name, [t.shape[i] for i in order], t.dtype, [t.strides[i] for i in order], t.base)


def transposed(t, a, b):
    order = list(range(len(t.shape)))
    order[a], order[b] = order[b], order[a]
    return permuted(t, order)


def viewed(t, shape):
    if len(shape) == 1 and isinstance(shape[0], (list, tuple)):
        shape = shape[0]
    shape = list(shape)
    if not is_contiguous(t) or not all(map(is_integer, shape)) or not is_integer(elements(t)):
        return Unknown("a view that is not followed")
    if -1 in shape:
        at = shape.index(-1)
        others = product(sum((factors_of(s) for i, s in enumerate(shape) if i != at), ()))
        shape[at] = divided(elements(t), others)
        if shape[at] is None:
            return Unknown("a view that is not followed")
    return Tensor(t.name, shape, t.dtype, None, t.base)


def axis_of(index, t, extra=0):
    return index + len(t.shape) + extra if index < 0 else index


def tensor_method(e, t, name, values, named):
    one = values[0] if values else named.get("dim")
    try:
        if name in ("size", "stride"):
            of = t.shape if name == "size" else t.strides
            return tuple(of) if one is None else of[one]
        if name in ("numel", "nelement"):
            return elements(t)
        if name in ("dim", "ndimension"):
            return len(t.shape)
        if name == "is_contiguous":
            return is_contiguous(t)
        if name == "element_size":
            return {"float32": 4, "int32": 4, "float64": 8, "int64": 8}.get(t.dtype, 2 if "16" in t.dtype else 1)
        if name in ("view", "reshape"):
            return viewed(t, values)
        if name == "flatten":
            first, last = (list(values) + [0, -1][len(values):])[:2]
            first, last = axis_of(first, t), axis_of(last, t)
            return viewed(t, t.shape[:first] + [-1] + t.shape[last + 1:])
        if name in ("detach", "requires_grad_") or name == "contiguous" and is_contiguous(t):
            return t
        if name == "to" and dtype_name(one) in (None, t.dtype) and not isinstance(one, Unknown):
            return t
        if name in ("t", "transpose", "permute"):
            return transposed(t, 0, 1) if name == "t" else transposed(t, *values) if name == "transpose" else \
                permuted(t, [axis_of(v, t) for v in (values if isinstance(one, int) else one)])
        if name == "unsqueeze":
            at = axis_of(one, t, 1)
            return viewed(t, t.shape[:at] + [1] + t.shape[at:])
        if name == "squeeze" and isinstance(one, int):
            at = axis_of(one, t)
            return viewed(t, t.shape[:at] + t.shape[at + 1:]) if t.shape[at] == 1 else t
        if name in ("new_empty", "new_zeros"):
            shape = one if isinstance(one, (list, tuple)) else values
            return Tensor(None, shape, dtype_name(named.get("dtype")) or t.dtype, zero=name == "new_zeros")
        if name == "zero_":
            t.base.zero = True
            return t
    except (IndexError, TypeError, ValueError):
        pass
    return Unknown(f"a tensor's .{name}(...)")
