"""draft_formula.py - pieces of C text: a tensor as a formula over indices, and what it is made of.
SPDX-License-Identifier: Apache-2.0
"""
import math
import re

from trace import Text

C_TYPES = {"float64": "double", "float32": "float", "float16": "_Float16", "bfloat16": "unsigned short", "int64": "int64_t", "int32": "int32_t",
           "int16": "int16_t", "int8": "int8_t", "uint8": "uint8_t", "bool": "uint8_t"}


def kind_of(dtype):
    return "real" if dtype.startswith(("float", "bfloat")) else "int64_t"


def number(value):
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return "INFINITY" if value == math.inf else "-INFINITY" if value == -math.inf else "NAN" if value != value else repr(value)
    return f"({value})" if isinstance(value, Text) else str(value)


def c_text(expression):
    """Axes are arguments `A_NAME`; what is left of Python's own is division."""
    return re.sub(r"\b([A-Za-z_]\w*)\b(?!\()", r"A_\1", str(expression)).replace("//", "/")


def atom(text):
    return text if re.fullmatch(r"\w+|\(.*\)", text) and text.count("(") <= 1 else f"({text})"


class Value:
    """A tensor as a formula: `at(indices)` is its element."""

    def __init__(self, shape, kind, at, dtype):
        self.shape, self.kind, self.at, self.dtype = shape, kind, at, dtype


def times(parts):
    parts = [p for p in parts if p != "1"]
    return " * ".join(atom(p) for p in parts) or "1"


def linear(index, shape):
    text = "0"
    for i, (at, size) in enumerate(zip(index, shape)):
        text = at if i == 0 else f"({text}) * {atom(size)} + {at}" if text != "0" else at
    return text


def unravel(text, shape):
    index = []
    for d, size in enumerate(shape):
        inner = times(shape[d + 1:])
        part = text if inner == "1" else f"({text}) / ({inner})"
        index.append("0" if size == "1" else part if d == 0 else f"({part}) % {atom(size)}")
    return index
