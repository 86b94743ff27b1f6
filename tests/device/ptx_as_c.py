#!/usr/bin/env python3
"""ptx_as_c.py - one kernel of a PTX text as a C function of the same name, instruction by instruction.

So a test runs on the host what a driver gets: draw.ptx beside draw.cu.  It knows the instructions that a compiler makes of
draw.cu and stops at any other, so it can never pass over one.

usage: ptx_as_c.py IN.ptx OUT.c
SPDX-License-Identifier: Apache-2.0
"""
import re
import sys

KINDS = {"rd": "uint64_t", "rs": "uint16_t", "r": "uint32_t", "fd": "double", "f": "float", "p": "int"}
C_TYPES = {"f32": "float", "f64": "double", **{f"{s}{n}": f"{'' if s == 's' else 'u'}int{n}_t"
                                               for s in "sub" for n in (8, 16, 32, 64)}}
PLACES = {"%ctaid": "blockIdx", "%ntid": "blockDim", "%tid": "threadIdx", "%nctaid": "gridDim"}
COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
INFIX = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "div": "/", "rem": "%"}
PRELUDE = """/* Made by ptx_as_c.py. */
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunused"
#include <math.h>
#include <stdint.h>
#include <string.h>

static float ptx_float(uint32_t bits) { float v; memcpy(&v, &bits, sizeof v); return v; }
static double ptx_double(uint64_t bits) { double v; memcpy(&v, &bits, sizeof v); return v; }
static uint32_t ptx_bits32(float v) { uint32_t bits; memcpy(&bits, &v, sizeof bits); return bits; }
static uint64_t ptx_bits64(double v) { uint64_t bits; memcpy(&bits, &v, sizeof bits); return bits; }
static int64_t ptx_to_s64(double v) {
    return v != v ? 0 : v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}
static uint64_t ptx_hi(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)(((wide)a * b) >> 64);
}

"""


def value(text, kind):
    """An operand as a C expression of the type that the instruction gives it."""
    if text.startswith("%"):
        name, _, part = text.partition(".")
        if part:
            return f"{PLACES[name]}.{part}"
        return f"({C_TYPES[kind]}){text[1:]}" if kind in C_TYPES else text[1:]
    if re.fullmatch(r"0f[0-9A-F]{8}", text):
        return f"ptx_float(0x{text[2:]}u)"
    if re.fullmatch(r"0d[0-9A-F]{16}", text):
        return f"ptx_double(0x{text[2:]}ull)"
    bits = int(C_TYPES[kind].strip("uint_t") or 0) if kind in C_TYPES and "int" in C_TYPES[kind] else 64
    return f"({C_TYPES.get(kind, 'int')})0x{int(text) % (1 << bits):x}ull"


def shifted(what, kind, a, b):
    bits = int(kind[1:])
    wide = value(a, kind)
    if what == "shl":
        return f"({value(b, 'u32')}) >= {bits} ? 0 : {wide} << ({value(b, 'u32')})"
    least = f"({value(b, 'u32')}) >= {bits} ? {bits - 1} : ({value(b, 'u32')})"
    return f"{wide} >> ({least})" if kind[0] == "s" else f"({value(b, 'u32')}) >= {bits} ? 0 : {wide} >> ({value(b, 'u32')})"


def moved(kind, to, a):
    if kind == "b64" and to.startswith("%rd") and a.startswith("%fd"):
        return f"ptx_bits64({a[1:]})"
    if kind == "b64" and to.startswith("%fd") and a.startswith("%rd"):
        return f"ptx_double({a[1:]})"
    if kind == "b32" and to.startswith("%r") and a.startswith("%f"):
        return f"ptx_bits32({a[1:]})"
    if kind == "b32" and to.startswith("%f") and a.startswith("%r"):
        return f"ptx_float({a[1:]})"
    return value(a, kind)


def compared(how, kind, a, b):
    x, y = value(a, kind), value(b, kind)
    if how == "nan":
        return f"{x} != {x} || {y} != {y}"
    if len(how) == 3 and how.endswith("u"):  # or unordered
        opposite = {"gtu": "<=", "geu": "<", "ltu": ">=", "leu": ">", "neu": "=="}[how]
        return f"!({x} {opposite} {y})"
    return f"{x} {COMPARE[how]} {y}"


def converted(how, to, kind, a):
    x = value(a, kind)
    if (how, to, kind) == ("rzi", "s64", "f64"):
        return f"ptx_to_s64({x})"
    if (how, to, kind) == ("rmi", "f32", "f32"):
        return f"floorf({x})"
    assert how in ("", "rn"), how
    return f"({C_TYPES[to]}){x}"


def at(place):
    base, offset = re.fullmatch(r"\[(%\w+)(?:\+(-?\d+))?\]", place).groups()
    return f"{base[1:]} + {offset or 0}"


def statement(op, args):
    """`to = ...;` of one instruction."""
    name, *how = op.split(".")
    kind = how[-1] if how else ""
    to = args[0].lstrip("%")
    if name == "ret":
        return "return;"
    if name == "bra":
        return f"goto {args[0].lstrip('$')};"
    if name == "ld" and how[0] == "param":
        return f"{to} = (uint64_t)(uintptr_t)parameter;"
    if name == "cvta":
        return f"{to} = {value(args[1], 'u64')};"
    if name == "ld" and how[:2] == ["global", "v2"]:
        first, second = (a.strip("{%} ") for a in args[:2])
        size = int(kind[1:]) // 8
        return " ".join(f"memcpy(&{reg}, (void *)(uintptr_t)({at(args[2])} + {k * size}), {size});"
                        for k, reg in enumerate((first, second)))
    if name == "ld" and how[0] == "global":
        return f"memcpy(&{to}, (void *)(uintptr_t)({at(args[1])}), {int(kind[1:]) // 8});"
    if name == "st" and how[0] == "global":
        return f"*({C_TYPES[kind]} *)(uintptr_t)({at(args[0])}) = {value(args[1], kind)};"
    if name == "mov":
        return f"{to} = {moved(kind, args[0], args[1])};"
    if name == "setp":
        return f"{to} = {compared(how[0], kind, args[1], args[2])};"
    if name == "selp":
        return f"{to} = {args[3][1:]} ? {value(args[1], kind)} : {value(args[2], kind)};"
    if name == "cvt":
        return f"{to} = {converted(how[0] if len(how) == 3 else '', how[-2], kind, args[1])};"
    if name in ("shl", "shr"):
        return f"{to} = {shifted(name, kind, args[1], args[2])};"
    if name == "mul" and how[0] == "hi":
        return f"{to} = ptx_hi({args[1][1:]}, {value(args[2], kind)});"
    if name == "mul" and how[0] == "wide":
        return f"{to} = (uint64_t){value(args[1], kind)} * {value(args[2], kind)};"
    if name == "mul" and how[0] in ("lo", "rn"):
        kind = kind.replace("s", "u")  # wraps
        return f"{to} = {value(args[1], kind)} * {value(args[2], kind)};"
    if name == "max":
        a, b = (value(x, kind) for x in args[1:])
        return f"{to} = {a} > {b} ? {a} : {b};"
    if name == "neg":
        return f"{to} = -{value(args[1], kind)};"
    if name == "abs":
        return f"{to} = {value(args[1], kind)} < 0 ? -{value(args[1], kind)} : {value(args[1], kind)};"
    if name == "not":
        return f"{to} = ~{value(args[1], kind)};"
    if name in INFIX and (kind[0] != "f" or how[0] == "rn"):
        if name in ("add", "sub"):
            kind = kind.replace("s", "u")  # wraps
        kind = "int" if kind == "pred" else kind
        return f"{to} = {value(args[1], kind)} {INFIX[name]} {value(args[2], kind)};"
    raise SystemExit(f"ptx_as_c.py: {op} is not known")


def line_as_c(line):
    found = re.fullmatch(r"(?:@(!?)%(\w+)\s+)?([\w.]+)(?:\s+(.*))?;", line)
    if not found:
        raise SystemExit(f"ptx_as_c.py: cannot read: {line}")
    negated, predicate, op, rest = found.groups()
    text = statement(op, [a.strip() for a in (rest or "").split(",")])
    return f"    if ({negated}{predicate}) {text}" if predicate else f"    {text}"


def translate(text):
    name = re.search(r"\.entry (\w+)\(", text)[1]
    body = text[text.index("\n{") + 2:text.rindex("}")]
    out = [PRELUDE + f"static void {name}(const void *parameter) {{"]
    for line in filter(None, (raw.strip() for raw in body.splitlines())):
        registers = re.fullmatch(r"\.reg \.\w+\s+%(\w+)<(\d+)>;", line)
        if registers:
            used = sorted(set(re.findall(rf"%({registers[1]}\d+)\b", body)))
            out.append(f"    {KINDS[registers[1]]} {' = 0, '.join(used)} = 0;")
        elif line.endswith(":"):
            out.append(f"{line.lstrip('$')};")
        else:
            out.append(line_as_c(line))
    return "\n".join(out + ["}", ""])


if __name__ == "__main__":
    source, target = sys.argv[1:]
    with open(source) as f, open(target, "w") as g:
        g.write(translate(f.read()))
