"""cuda.py - how a __global__ function is launched, from the call that the library itself makes.

`f<<<grid, block, shared>>>(a, b, n)` names the function's parameters, so a host variable of the call is what the
parameter is.  Other names are looked for in front of the call, as `TYPE name = expression;`; a division that
rounds up is cdiv whatever a library calls it.  What stays unknown is refused, never guessed.
SPDX-License-Identifier: Apache-2.0
"""
import re

from source import TOKEN, Refused

ROUNDS_UP = re.compile(r"(ceil_?div|cdiv|div_?(round_?)?up|divup|CEIL_?DIV|DIV_?UP)$", re.I)
KNOWN = {"cdiv", "min", "max", "pow2"}


def tokens(text):
    return [m[0] for m in TOKEN.finditer(text) if m.lastgroup not in ("comment", "directive")]


def parts(words):
    """At commas outside of parentheses."""
    out, depth = [[]], 0
    for w in words:
        depth += (w in "([{") - (w in ")]}")
        if w == "," and depth == 0:
            out.append([])
        else:
            out[-1].append(w)
    return [p for p in out if p]


def call_of(text, name):
    """(tokens in front, configuration, arguments) of the first launch of `name`."""
    words = tokens(text)
    for i, w in enumerate(words):
        if w != name or words[i + 1:i + 4] != ["<"] * 3:
            continue
        stop = next((j for j in range(i + 4, len(words)) if words[j:j + 3] == [">"] * 3), None)
        if stop is None or words[stop + 3:stop + 4] != ["("]:
            continue
        depth, end = 1, stop + 4
        while depth and end < len(words):
            depth += (words[end] == "(") - (words[end] == ")")
            end += 1
        return words[:i], parts(words[i + 4:stop]), parts(words[stop + 4:end - 1])
    return None


class Configuration:
    def __init__(self, text, name, launch, constant):
        found = call_of(text, name)
        if not found:
            raise Refused(f"{launch.where}: error: no call {name}<<<grid, block>>>(...) is in these sources; say it by --launch "
                          "'grid(...) block(...)'")
        self.before, sizes, given = found
        self.where, self.used, self.constant = launch.where, set(), constant
        self.names = {name: value if value.isidentifier() else f"({value})" for name, value in launch.host.items()}
        self.names.update({"".join(g): v for g, v in zip(given, launch.values)})
        self.axes = set(launch.task.axes)
        if len(sizes) < 2:
            raise Refused(f"{self.where}: error: its call says no block")
        self.grid, self.block = (self.dims(s) for s in sizes[:2])
        self.smem = self.dims(sizes[2]) if len(sizes) > 2 and sizes[2] != ["0"] else ""

    def defined(self, name):
        """The last `TYPE name = expression;` or `dim3 name(a, b)` in front of the call, or a constant of the file."""
        for i in range(len(self.before) - 1, 0, -1):
            if self.before[i] == name and self.before[i + 1:i + 2] and self.before[i + 1] in "=({" and re.match(r"\w", self.before[i - 1]):
                open_ = self.before[i + 1]
                depth, end = 0, i + 1 if open_ != "=" else i + 2
                start = i + 2
                while end < len(self.before):
                    w = self.before[end]
                    depth += (w in "([{") - (w in ")]}")
                    end += 1
                    if (open_ == "=" and w == ";" and depth == 0) or (open_ != "=" and depth == 0):
                        return self.before[start:end - 1]
        return None

    def dims(self, words, depth=0):
        if words and words[0] == "dim3" and words[1:2] == ["("]:
            words = words[2:-1]
        elif len(words) == 1 and re.match(r"[A-Za-z_]", words[0]) and words[0] not in self.names:
            inner = self.defined(words[0])
            if inner and depth < 8:
                return self.dims(inner, depth + 1)
        return ", ".join(self.expression(p, depth) for p in parts(words))

    def expression(self, words, depth=0):
        out = []
        for i, w in enumerate(words):
            if not re.match(r"[A-Za-z_]", w):
                out.append(re.sub(r"(?<=\d)[uUlL]+$", "", w))
            elif w in self.names or w in self.axes:
                self.used.add(w)
                out.append(re.sub(r"^i64\((.*)\)$", r"\1", self.names.get(w, w)))
            elif words[i + 1:i + 2] == ["("]:
                if not ROUNDS_UP.search(w) and w not in KNOWN:
                    self.unknown(w)
                out.append("cdiv" if ROUNDS_UP.search(w) else w)
            elif w == "sizeof":
                self.unknown(w)
            else:
                inner = self.defined(w) or tokens(self.constant(w))
                if not inner or depth > 8:
                    self.unknown(w)
                out.append(f"({self.expression(inner, depth + 1)})" if len(inner) > 1 else self.expression(inner, depth + 1))
        return " ".join(out).replace("( ", "(").replace(" )", ")").replace(" ,", ",").replace("cdiv (", "cdiv(")

    def unknown(self, word):
        raise Refused(f"{self.where}: error: its call needs {word}, which is neither an axis nor computed from one; say what it is by "
                      f"--args {word}=AXIS, or the launch by --launch 'grid(...) block(...)'")

    def clauses(self):
        return f"grid({self.grid}) block({self.block})" + (f" smem({self.smem})" if self.smem else "")
