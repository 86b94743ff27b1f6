"""source.py - one file of a library: its text, its tokens, what it says of rights.

Offsets are those of bytes, as a compiler counts them, so a text is read as Latin-1 and written as the bytes
it was.  SPDX-License-Identifier: Apache-2.0
"""
import bisect
import re

TOKEN = re.compile(r"""(?P<comment>/\*.*?\*/|//(?:\\\n|[^\n])*)
  |(?P<directive>^[ \t]*\#(?:\\\r?\n|/\*.*?\*/|//(?:\\\r?\n|[^\n])*|"(?:\\.|[^"\\\n])*"|[^\n\\]|\\)*)
  |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  |(?P<word>[A-Za-z_$][\w$]*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<mark>[^\s\w])""", re.X | re.S | re.M)
CONDITIONAL = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b")
INCLUDE = re.compile(r"[ \t]*#[ \t]*include")
MACRO = re.compile(r"[ \t]*#[ \t]*(define|undef)\b")
PRAGMA = re.compile(r"[ \t]*#[ \t]*pragma[ \t]+(GCC[ \t]+(target|optimize|push_options|pop_options|visibility)|pack)\b")
LICENCES = [("Apache-2.0", r"Apache License,? *Version 2"), ("MPL-2.0", r"Mozilla Public License"), ("ISC", r"Permission to use, copy, modify, and(/or)? distribute"),
            ("LGPL", r"GNU (Lesser|Library) General Public"), ("AGPL", r"GNU Affero"), ("GPL", r"GNU General Public"),
            ("MIT", r"Permission is hereby granted, free of charge|\bMIT licen[sc]e|licen[sc]e[sd]? (under|:) (the )?MIT\b"), ("Zlib", r"This software is provided 'as-is'"),
            ("BSD-3-Clause", r"Redistribution and use in source and binary forms.*(Neither the name|be used to endorse)"),
            ("BSD-2-Clause", r"Redistribution and use in source and binary forms"), ("public domain", r"public domain")]
VERSION = re.compile(r"(?:either )?version ([0-9.]+)( of the License,? or| or,? \(?at your option)?", re.I)


class Refused(Exception):
    """Why this cannot be one kernel file, for people."""


def plain(text):
    return text.encode("latin-1").decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", " ")


def harmless(text):
    """`//!` is a directive of klineage's: as a comment of the library it must not become one."""
    return re.sub(r"^([ \t\v\f\r]*)//!", r"\1// !", text, flags=re.M)


def pasted(body):
    """Patterns of the names that a macro's body makes by ##: what is not a parameter stands, the rest may be anything."""
    name = re.match(r"\s*\w+(?:\(([^)]*)\))?", body)
    params = set(re.findall(r"\w+", name[1] or "")) if name else set()
    for found in re.findall(r"\w+(?:\s*##\s*\w+)+", body):
        parts = re.split(r"\s*##\s*", found)
        if sum(len(p) for p in parts if p not in params) >= 2:
            yield re.compile("".join(r"\w*" if p in params else re.escape(p) for p in parts))


def words(body):
    """Of a macro, whose lines are one line: a # at the beginning of one is no directive."""
    text = re.sub(r"\\\r?\n", " ", body)
    return {m[0] for m in TOKEN.finditer(text) if m.lastgroup == "word"}


class Source:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="latin-1", newline="") as f:
            self.text = f.read()
        if len(self.text) > 8 << 20:
            raise Refused(f"{path}: larger than 8 MiB")
        found = [(m.lastgroup, m.start(), m.end()) for m in TOKEN.finditer(self.text)]
        self.comments = [t for t in found if t[0] == "comment"]
        self.tokens = [t for t in found if t[0] != "comment"]
        self.starts = [t[1] for t in self.tokens]
        self.lines = [0] + [m.end() for m in re.finditer("\n", self.text)]

    def line(self, offset):
        return bisect.bisect_right(self.lines, offset)

    def begin_of(self, begin, floor):
        """Back from a declaration to where its first word stands: attributes and macros come before what a compiler names."""
        i = bisect.bisect_left(self.starts, begin) - 1
        while i >= 0 and self.starts[i] >= floor and self.tokens[i][0] != "directive" and self.text[self.starts[i]] not in ";}":
            begin = self.starts[i]
            i -= 1
        return begin

    def end_of(self, end, is_body):
        """On to the semicolon; a function's body has none, but a macro that makes one may."""
        i = bisect.bisect_left(self.starts, end)
        while i < len(self.tokens):
            kind, begin, stop = self.tokens[i]
            if self.text[begin] == ";":
                return stop
            if is_body or kind == "directive":
                break
            i += 1
        return end

    def directive(self, offset):
        """The whole directive around an offset: (begin, end)."""
        i = bisect.bisect_right(self.starts, offset) - 1
        return self.tokens[i][1:] if i >= 0 and self.tokens[i][0] == "directive" else (offset, offset)

    def directives(self, begin, end):
        for i in range(bisect.bisect_left(self.starts, begin), len(self.tokens)):
            if self.starts[i] >= end:
                return
            if self.tokens[i][0] == "directive":
                yield self.tokens[i][1:]

    def balanced(self, begin, end):
        depth = 0
        for at, stop in self.directives(begin, end):
            found = CONDITIONAL.match(self.text[at:stop])
            depth += 0 if not found else {"i": 1, "e": 0}[found[1][0]] - (found[1] == "endif")
        return depth == 0

    def includes(self, begin, end):
        return any(INCLUDE.match(self.text[at:stop]) for at, stop in self.directives(begin, end))

    def macros(self, begin, end):
        """What a declaration leaves behind where it is left out: others may need the macros that are defined in it."""
        found = [self.text[at:stop] for at, stop in self.directives(begin, end)]
        found = [line for line in found if CONDITIONAL.match(line) or MACRO.match(line)]
        return "\n" + "\n".join(found) + "\n" if any(MACRO.match(line) for line in found) else ""

    def active(self, begin, end, skipped):
        """The text without what the preprocessor left out, and without the lines that decided so."""
        gone = set()
        for at, stop in self.directives(begin, end):
            if CONDITIONAL.match(self.text[at:stop]):
                gone.update(range(self.line(at), self.line(stop - 1) + 1))
            elif INCLUDE.match(self.text[at:stop]) and not self.left_out(at, skipped):
                raise Refused(f"{self.path}:{self.line(at)}: an #include inside of a definition is not sliced")
        if not gone:
            return self.text[begin:end]
        first, out = self.line(begin), []
        for i, line in enumerate(self.text[begin:end].splitlines(True)):
            if first + i not in gone and not any(a < first + i < b for a, b in skipped):
                out.append(line)
        return "".join(out)

    def left_out(self, offset, skipped):
        return any(a < self.line(offset) < b for a, b in skipped)

    # ---- rights ----------------------------------------------------------------------------------------

    def notice(self):
        """The comments at the top, where they speak of rights."""
        end, kept = 0, []
        for _, begin, stop in self.comments:
            if self.text[end:begin].strip():
                break
            kept.append(self.text[begin:stop])
            end = stop
        text = "\n".join(kept)
        return plain(text) if re.search(r"copyright|licen[sc]e|SPDX|public domain", text, re.I) else ""

    def licence(self):
        return licence_in(self.notice())


def licence_in(text):
    spdx = re.search(r"SPDX-License-Identifier:\s*([\w.+() -]+?)\s*(?:\*/|$)", text, re.M)
    if spdx:
        return spdx[1]
    flat = re.sub(r"[\s*/]+", " ", text)
    for name, pattern in LICENCES:
        if re.search(pattern, flat, re.I):
            version = VERSION.search(flat) if name.endswith("GPL") else None
            return name + (f"-{version[1].rstrip('.')}-{'or-later' if version[2] else 'only'}" if version else "")
    return ""
