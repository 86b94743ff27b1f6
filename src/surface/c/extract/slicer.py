"""slicer.py - a function of a library, with all that it needs and nothing else.

libclang says what is declared, where, and what each name refers to.  What is kept is the library's own text:
whole top-level declarations and whole macros, in the order in which the compiler met them, less the branches
that the preprocessor left out.  Files that are read more than once under different macros, calls through
pointers and bodies that are not there are refused, with the place.  SPDX-License-Identifier: Apache-2.0
"""
import bisect
import difflib
import os
import re

import libclang as cl
from source import CONDITIONAL, PRAGMA, Refused, Source, harmless, pasted, plain, words

MAIN = "/klineage-init"
HERE = os.path.dirname(os.path.realpath(__file__)) + os.sep
SYSTEM = ("/usr/include/", "/usr/lib/", "/usr/local/include/", "/usr/local/lib/", "/usr/local/cuda", "/opt/", HERE)
CALLABLE = (cl.FUNCTION, cl.METHOD, cl.CONSTRUCTOR, cl.CONVERSION, cl.TEMPLATE)
BUILTIN = ("__builtin_", "__sync_", "__atomic_", "__c11_atomic_")
SWITCHES = re.compile(r"_GNU_SOURCE|_(POSIX_C|XOPEN|DEFAULT|ISOC99|BSD)_SOURCE|__STDC_\w+_MACROS")


class Chunk:
    """Top-level declarations that share text."""

    def __init__(self, file, begin, end):
        self.file, self.begin, self.end, self.cursors = file, begin, end, []


class Program:
    def __init__(self, sources, flags, defines, roots, cuda=False):
        self.cuda, self.linked, self.kernel = cuda, None, ""   # linked: the chunk of the kernel, which is exported
        self.roots = [os.path.realpath(r) for r in roots]
        self.defines = dict(d.split("=", 1) if "=" in d else (d, "1") for d in defines)
        self.sources, self.files = [os.path.realpath(s) for s in sources], {}
        text = f'#include "{HERE}cuda_prelude.h"\n' * cuda + "".join(f'#include "{s}"\n' for s in self.sources)
        self.unit = u = cl.Unit(MAIN, text, flags)
        for file, line, column, said in u.errors():
            if cuda or (file and not self.ours(file)):
                continue                                      # gcc reads its own headers, nvcc its own words
            raise Refused(f"{self.short(file)}:{line}:{column}: error: {said}")
        if u.failed:
            raise Refused("libclang could not read it")
        self.skipped = u.skipped()
        self.order_files()
        self.read_top()

    # ---- where things are ------------------------------------------------------------------------------

    def short(self, file):
        """A path without the machine's own folders."""
        inside = [os.path.relpath(file, r) for r in self.roots if file.startswith(r + os.sep)]
        return inside[0] if inside else os.path.basename(file)

    def ours(self, file):
        """Is it the library's?  What is neither that nor the system's was not named by anybody."""
        if file == MAIN or any(file.startswith(r + os.sep) for r in self.roots):
            return True
        if file and not file.startswith(SYSTEM):
            raise Refused(f"{file} lies outside of the folders of the sources; name its folder by -I in --flags")
        return False

    def source(self, file):
        if file not in self.files:
            self.files[file] = Source(file)
        return self.files[file]

    def order_files(self):
        self.entered, self.above = {}, {}
        for file, stack in self.unit.entered():
            self.entered[file] = self.entered.get(file, 0) + 1
            offsets = [at for _, at in reversed(stack)]
            if any(f == "" for f, _ in stack):
                offsets = [-1, *offsets]                      # of the command line, before all else
            self.above.setdefault(file, (offsets, stack))

    def key(self, file, offset):
        return (*self.above.get(file, ([], ()))[0], offset)

    def read_top(self):
        self.macros, self.expansions, self.inclusions, decls = {}, {}, [], {}
        for c in self.unit.top():
            file, begin, end = self.unit.extent(c)
            if c.kind == cl.MACRO:
                self.macros.setdefault(self.unit.name(c), []).append((file, begin))
            elif not file or not self.ours(file):
                continue
            elif c.kind == cl.EXPANSION:
                self.expansions.setdefault(file, []).append((begin, self.unit.name(c)))
            elif c.kind == cl.INCLUSION:
                self.inclusions.append((file, begin, end, self.unit.file(self.unit.l.clang_getIncludedFile(c))))
            else:
                decls.setdefault(file, []).append((begin, end, c))
        self.own_macros = [name for name, found in self.macros.items() if any(f and self.ours(f) for f, _ in found)]
        self.chunks = {file: self.merged(file, found) for file, found in decls.items() if file != MAIN}

    def merged(self, file, found):
        text, out = self.source(file), []
        for begin, end, c in sorted(found, key=lambda d: d[:2]):
            is_body = bool(self.bodies(c))
            begin = text.begin_of(begin, out[-1].end if out else 0)
            end = text.end_of(end, is_body)
            if out and begin < out[-1].end:
                out[-1].end = max(out[-1].end, end)
            else:
                out.append(Chunk(file, begin, end))
            out[-1].cursors.append(c)
        return out

    def chunk_at(self, file, offset):
        chunks = self.chunks.get(file, [])
        i = bisect.bisect_right([c.begin for c in chunks], offset) - 1
        return chunks[i] if i >= 0 and offset < chunks[i].end else None

    def bodies(self, c):
        """The functions that a top-level declaration defines: one, or those in `extern "C"`."""
        inner = self.unit.children(c) if c.kind in (cl.LINKAGE, cl.OTHER) else [c]
        return [f for f in inner if f.kind == cl.FUNCTION and self.unit.l.clang_isCursorDefinition(f)]

    # ---- what a function needs -------------------------------------------------------------------------

    def function(self, name):
        found = [f for chunks in self.chunks.values() for k in chunks for c in k.cursors for f in self.bodies(c) if self.unit.name(f) == name]
        if found:
            return found[0]
        known = sorted({self.unit.name(f) for s in self.sources for k in self.chunks.get(s, []) for c in k.cursors for f in self.bodies(c)})
        raise Refused(f"no function {name} is defined in these sources" + (f"; there are {', '.join(known[:12])}" if known else ""))

    def where(self, cursor):
        file, _, line, column = self.unit.place(cursor)
        return f"{self.short(file)}:{line}:{column}"

    def reach(self, entry):
        """Everything that is needed, from one function on: chunks, macros, headers of the system."""
        self.kept, self.kept_macros, self.headers, self.prelude, self.todo = {}, {}, {}, set(), []
        self.keep(entry)
        while self.todo:
            chunk = self.todo.pop()
            for c in chunk.cursors:
                self.look(c, chunk)
                for inner in self.unit.walk(c):
                    self.look(inner, chunk)
            text = self.source(chunk.file)
            names = self.expansions.get(chunk.file, [])
            for i in range(bisect.bisect_left(names, (chunk.begin, "")), len(names)):
                if names[i][0] >= chunk.end:
                    break
                if not text.left_out(names[i][0], self.skipped.get(chunk.file, [])):
                    self.need_macro(names[i][1], self.key(chunk.file, names[i][0]))

    def look(self, c, chunk):
        u = self.unit
        if c.kind == cl.CALL:
            callee = u.referenced(c)
            if (callee is None or callee.kind not in CALLABLE) and not (self.cuda and callee is None):
                raise Refused(f"{self.where(c)}: error: calls through a pointer{' ' + u.name(c) if u.name(c) else ''}: which "
                              "function runs is decided when it runs, so it cannot be one kernel; name the function itself")
        if c.kind == cl.FUNCTION and u.l.clang_isCursorDefinition(c) and u.l.clang_isFunctionTypeVariadic(u.l.clang_getCursorType(c)):
            raise Refused(f"{self.where(c)}: error: {u.name(c)} takes a variable number of arguments")
        target = u.referenced(c)
        if target is None or target.kind in (cl.PARAMETER, cl.MACRO):
            return
        self.keep(u.definition(target) or target, c, chunk)

    def keep(self, target, use=None, chunk=None):
        u = self.unit
        file, offset, _, _ = u.place(target)
        if not file or (target.kind == cl.FUNCTION and u.name(target).startswith(BUILTIN)):
            return                                            # the compiler's own; some seem to be where they are used
        if not self.ours(file):
            return self.need_header(file)
        found = self.chunk_at(file, offset)
        if found is None:
            return
        if target.kind in (cl.FUNCTION, cl.VARIABLE) and found is not chunk:
            self.must_be_here(target, use)
        if chunk and target.kind in (cl.FUNCTION, cl.VARIABLE) and self.key(file, found.begin) > self.key(chunk.file, chunk.begin):
            self.keep_declaration(target)
        self.add(found)

    def add(self, chunk):
        if id(chunk) in self.kept:
            return
        if self.entered.get(chunk.file, 1) > 1:
            raise Refused(f"{self.short(chunk.file)} is read {self.entered[chunk.file]} times under different macros (a "
                          "template), so its text alone does not say what is compiled")
        self.kept[id(chunk)] = chunk
        self.todo.append(chunk)

    def keep_declaration(self, target):
        first = self.unit.l.clang_getCanonicalCursor(target)
        file, offset, _, _ = self.unit.place(first)
        if file and self.ours(file):
            chunk = self.chunk_at(file, offset)
            if chunk:
                self.add(chunk)

    def must_be_here(self, target, use):
        u, at = self.unit, self.where(use) if use else ""
        if target.kind == cl.FUNCTION and not u.l.clang_isCursorDefinition(target):
            raise Refused(f"{at}: error: calls {u.name(target)}, which is declared in {self.where(target)} and defined in none "
                          "of the sources; add the file that defines it with --from")
        if target.kind == cl.VARIABLE and u.l.clang_Cursor_getStorageClass(target) == 2:
            raise Refused(f"{at}: error: reads {u.name(target)}, which is declared in {self.where(target)} and defined in none "
                          "of the sources; add the file that defines it with --from")

    def need_macro(self, name, use):
        """The definition that held at `use`, and what its body names."""
        found = [(self.key(f, at), f, at) for f, at in self.macros.get(name, []) if f and self.ours(f) and self.key(f, at) < use]
        if not found:
            if name in self.defines:
                return self.need_define(name, use)
            return [self.need_header(f) for f, _ in self.macros.get(name, [])[:1] if f and not self.ours(f)]
        key, file, at = max(found)
        if key in self.kept_macros:
            return None
        if self.entered.get(file, 1) > 1:
            raise Refused(f"{self.short(file)} is read {self.entered[file]} times, so which {name} holds its text does not say")
        text = self.source(file)
        begin, end = text.directive(at)
        self.kept_macros[key] = (name, file, begin, end)
        body = re.sub(r"^[ \t]*#[ \t]*define", "", text.text[begin:end])
        made = [m for pattern in pasted(body) for m in self.own_macros if pattern.fullmatch(m)]
        for word in {*words(body), *made} - {name}:
            if word in self.macros:
                self.need_macro(word, use)
        return None

    def constant(self, name):
        """What a macro without parameters stands for, as it was last defined; empty for any other name."""
        found = max(((self.key(f, at), f, at) for f, at in self.macros.get(name, []) if f and self.ours(f)), default=None)
        if not found:
            return self.defines.get(name, "")
        text = self.source(found[1])
        said = re.match(r"[ \t]*#[ \t]*define[ \t]+\w+[ \t]+(.*)", text.text[slice(*text.directive(found[2]))])
        return said[1] if said else ""

    def need_define(self, name, use):
        if name not in self.prelude:
            self.prelude.add(name)
            for word in words(self.defines[name]) - {name}:
                self.need_macro(word, use)

    def need_header(self, file):
        """The #include of the library through which a header of the system came."""
        stack = self.above.get(file, ([], ()))[1]
        if any(f.startswith(HERE) for f in (file, *(f for f, _ in stack))):
            return None                                       # nvcc's own
        chain = [(file, None), *stack]
        for (inner, _), (outer, at) in zip(chain, chain[1:]):
            if outer and (outer == MAIN or self.ours(outer)):
                return self.headers.setdefault(inner, (outer, at))
        return None

    # ---- the text --------------------------------------------------------------------------------------

    def include_of(self, header, outer, at):
        # clang calls the end of an #include the place that it leads from
        for file, begin, end, included in self.inclusions:
            if file == outer and included == header:
                return self.source(outer).text[begin:end].strip()
        return f"#include <{os.path.basename(header)}>"

    def items(self):
        """(key, upstream text, text here, file, line)"""
        for name, file, begin, end in self.kept_macros.values():
            text = self.source(file)
            yield self.key(file, begin), text.text[begin:end], text.text[begin:end], file, text.line(begin)
        inside = {c.file for c in self.kept.values() if any(k.kind == cl.FUNCTION for k in c.cursors)}
        for chunk in self.kept.values():
            text = self.source(chunk.file)
            yield (self.key(chunk.file, chunk.begin), text.text[chunk.begin:chunk.end],
                   text.active(chunk.begin, chunk.end, self.skipped.get(chunk.file, [])), chunk.file, text.line(chunk.begin))
        for file in inside:
            text = self.source(file)
            for begin, end in text.directives(0, len(text.text)):
                if PRAGMA.match(text.text[begin:end]) and not text.left_out(begin, self.skipped.get(file, [])) and not self.chunk_at(file, begin):
                    yield self.key(file, begin), text.text[begin:end], text.text[begin:end], file, text.line(begin)

    def slice(self):
        """(text, [(file, first line)] of what was taken, upstream lines, lines that differ from them)"""
        out = [f"#define {n} {self.defines[n]}" for n in sorted(self.prelude)]
        switches = [(f, at) for n, found in self.macros.items() if SWITCHES.fullmatch(n) for f, at in found if f and self.ours(f)]
        for file, at in switches:
            out.append(self.source(file).text.__getitem__(slice(*self.source(file).directive(at))).strip())
        for header, (outer, at) in sorted(self.headers.items(), key=lambda h: self.key(*h[1])):
            line = self.include_of(header, outer, at)
            if line not in out:
                out.append(line)
        seen, taken, upstream, edits = set(), [], 0, len(self.prelude)
        was_macro = True
        for key, before, here, file, line in sorted(self.items(), key=lambda i: i[0]):
            inside = any(c.file == file and c.begin < key[-1] < c.end for c in self.kept.values())
            if inside:
                continue                                      # a macro in a function's body
            name = re.match(r"[ \t]*#[ \t]*define[ \t]+(\w+)", here)
            if name and name[1] in seen:
                out.append(f"#undef {name[1]}")
                edits += 1
            seen.update([name[1]] if name else [])
            if not (was_macro and name):
                out.append("")
            was_macro = bool(name)
            safe = harmless(plain(here))
            if self.linked and key == self.key(self.linked.file, self.linked.begin):
                safe = exported(safe, self.kernel)
            out.append(safe.rstrip() + "\n" * safe.rstrip().endswith("\\"))    # a macro may end with an empty line
            taken.append((self.short(file), line))
            upstream += plain(before).count("\n") + 1
            edits += differing(plain(before), safe)
        return "\n".join(out).lstrip("\n") + "\n", taken, upstream, edits

    # ---- the library itself ----------------------------------------------------------------------------

    def flat(self):
        """All of the sources as one text, with their conditions, macros and pragmas: the library's own #includes are put in
        place of their lines, and functions that are not reached are left out, since what they call is not here."""
        defines = "".join(f"#define {n} {v}\n" for n, v in self.defines.items())
        seen = set()
        return defines + "".join(self.flattened(s, seen) for s in self.sources)

    def flattened(self, file, seen):
        text = self.source(file)
        if re.search(r"^[ \t]*#[ \t]*pragma[ \t]+once", text.text, re.M) and file in seen:
            return ""
        seen.add(file)
        changes = [(b, b, "//") for b, e in text.directives(0, len(text.text)) if re.match(r"[ \t]*#[ \t]*pragma[ \t]+once", text.text[b:e])]
        changes += [(*text.directive(begin), "\n" + self.flattened(included, seen) + "\n") for outer, begin, _, included in self.inclusions
                    if outer == file and included and self.ours(included)]
        changes += [(k.begin, k.end, text.macros(k.begin, k.end)) for k in self.chunks.get(file, []) if self.is_idle(k)]
        if self.linked and self.linked.file == file:
            begin, end = self.linked.begin, self.linked.end
            changes.append((begin, end, exported(text.text[begin:end], self.kernel)))
        out, at = [], 0
        for begin, end, replacement in sorted(changes):
            if begin >= at:
                out += [text.text[at:begin], replacement]
                at = end
        return "".join(out) + text.text[at:] + "\n"

    def is_idle(self, chunk):
        """A function that is not reached, and whose text can be left out as it stands.  In C++ methods and templates call
        as well, so there it is every declaration."""
        text, at = self.source(chunk.file), (chunk.begin, chunk.end)
        if id(chunk) in self.kept or not text.balanced(*at):
            return False
        return not text.includes(*at) if self.cuda else all(self.bodies(c) for c in chunk.cursors)


def exported(text, name):
    """A kernel under its own name, which `static` would hide."""
    found = re.search(rf"\b{re.escape(name)}\b", text)
    at = found.start() if found else 0
    return 'extern "C" ' + re.sub(r"\bstatic\s+", "", text[:at], count=1) + text[at:]


def differing(before, here):
    """Lines that are not upstream's: changed, left out, or put in."""
    a, b = ([line.rstrip() for line in t.splitlines()] for t in (before, here))
    return 0 if a == b else sum(max(i2 - i1, j2 - j1) for what, i1, i2, j1, j2 in
                                difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if what != "equal")
