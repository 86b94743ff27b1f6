"""extract - one function of a library in C as one file that the gate can judge.

usage: python3 -B c_extract < REQUEST.json     a document on stdout; why not, in one line, on stderr, exit status 1

The request: sources, with, function, definition, args, flags, library_flags, require, upstream, licence.  The
answer: the kernel file (`source`), the library's own sources under the same launch (`library`), and what is on
record.  Nothing of the library is run.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import resource
import shlex
import sys

import libclang as cl
from cuda import Configuration
from launch import Launch, Task
from slicer import Program
from source import Refused, Source, harmless, licence_in, plain

MOST_MEMORY, MOST_SECONDS = 4 << 30, 120
MOST_BYTES = 1 << 20                                          # of a kernel file
PARSE = ("-I", "-isystem", "-include", "-D", "-U", "-iquote")
SILENT = re.compile(r"-W(?!a,|l,)|-g\d?$|-ggdb|-fPIC$|-fpic$|-pipe$|-c$|-pthread$|-fstack-protector|-fstack-clash|-fvisibility=|"
                    r"-fcf-protection|-fno-plt|-MMD?$|-MP$|-pedantic|-ffile-prefix-map=|-fdebug-prefix-map=|-fno-common$|-fcommon$|-f(no-)?ident$")
# Of the flags for code, those that decide which branches hold; nothing that could load a plugin reaches the parser.
DECIDE = re.compile(r"-std=[\w+]+|-O[0-3s]|-Ofast|-ffast-math|-m(arch|tune|cpu|avx|sse|fma|bmi|f16c|no-avx|no-fma)[\w.=-]*")
# What libraries ask of the compiler in their conditions.  From 11 on the C library wants attributes that clang has not.
GCC = "10.2"
# Types that gcc has as words and clang has not; the C library expects them of a compiler with gcc's version.
TYPES = ["-D_Float128=__float128", "-D_Float64x=long double", "-D_Float32x=double", "-D_Float64=double", "-D_Float32=float"]
LICENCE_FILES = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT)([.\-_].*)?", re.I)


class Flags:
    """What a build says to its compiler: for reading, for the code, and of no meaning here."""

    def __init__(self, text):
        self.parse, self.code, self.defines, self.folders, self.dropped = [], [], [], [], []
        words = iter(shlex.split(text))
        for word in words:
            head = next((p for p in PARSE if word.startswith(p)), None)
            if head:
                self.read(head, word[len(head):] or next(words, ""))
            elif SILENT.match(word):
                self.dropped.append(word)
            else:
                self.code.append(word)

    def read(self, head, value):
        if head == "-D" and value.split("=")[0] != "_FORTIFY_SOURCE":
            self.defines.append(value)
        if head in ("-I", "-isystem", "-iquote"):
            value = os.path.realpath(value)
            self.folders.append(value)
        if head == "-include":
            value = os.path.realpath(value)
            self.folders.append(os.path.dirname(value))
        self.parse += [head + value] if head in ("-D", "-U", "-I") else [head, value]

    def directive(self):
        return f"//! flags {' '.join(self.code)}\n" if self.code else ""


def arguments(flags, cuda):
    """As the gate compiles, so that the same branches hold."""
    if cuda:
        headers = ["-isystem/usr/local/cuda/include"] if os.path.isdir("/usr/local/cuda/include") else []
        return ["-xc++", "-std=c++17", "-w", "-ferror-limit=0", *headers, *flags.parse]
    out = ["-xc", "-w", "-ferror-limit=20", f"-fgnuc-version={GCC}", "-U__clang__", *TYPES]
    out += [] if any(f.startswith("-std=") for f in flags.code) else ["-std=gnu17"]
    out += [] if any(f.startswith("-O") for f in flags.code) else ["-O3"]
    out += [] if any(f.startswith("-march=") for f in flags.code) else ["-march=native"]
    return out + [f for f in flags.code if DECIDE.fullmatch(f)] + flags.parse


def licence_of(request, program, files):
    """(name, where it was found, the notices to keep)"""
    notices, found = [], []
    for file in files:
        source = program.source(file)
        if source.notice() and source.notice() not in notices:
            notices.append(source.notice())
        if source.licence() and source.licence() not in [f[0] for f in found]:
            found.append((source.licence(), program.short(file)))
    if not found:
        found = list(licence_files(program))
    if request.get("licence"):
        return request["licence"], "as given", notices
    return (" and ".join(f[0] for f in found) or "not found", ", ".join(f[1] for f in found) or "no header and no licence file", notices)


def licence_files(program):
    """A licence that lies above the sources, at most six folders up, inside of what was named."""
    for root in {os.path.dirname(s) for s in program.sources}:
        for _ in range(6):
            names = sorted(n for n in os.listdir(root) if LICENCE_FILES.fullmatch(n)) if os.path.isdir(root) else []
            for name in names:
                path = os.path.join(root, name)
                if os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
                    said = licence_in(Source(path).text)
                    if said:
                        yield said, name
                        return
            root = os.path.dirname(root)


def commented(text):
    return re.sub(r"\*/", "* /", text)


def head(request, said, taken, upstream, edits, licence):
    origin = " ".join((request.get("upstream") or "").split())
    rows = {}
    for file, line in taken:
        rows.setdefault(file, []).append(str(line))
    lines = [f"{request['function']}, taken by klineage init out of " + (origin or "a library"), ""]
    lines += [f"  from      {file}, line{'s' * (len(at) > 1)} {', '.join(at)}" for file, at in rows.items()]
    lines += [f"  upstream  {origin or 'not given (--upstream)'}", f"  licence   {licence[0]} ({licence[1]})",
              f"  edits     {edits} of {upstream} lines differ from upstream's"]
    lines += [f"  added     {n}" for n in said]
    for notice in licence[2]:
        body = [re.sub(r"^[ \t]*(/\*+|\*+/|\*|//+!?)[ \t]?", "", l).replace("*/", "").rstrip() for l in notice.splitlines()]
        lines += ["", *body]
    text = "\n".join(" * " + l if l else " *" for l in lines)
    return "/* " + commented(text)[3:].rstrip() + "\n */\n"


def wrapper(program, entry, launch, name):
    """A static or inline function cannot be launched; one that calls it can."""
    l = program.unit.l
    source = program.source(program.unit.place(entry)[0])
    chunk = program.chunk_at(*program.unit.place(entry)[:2])
    before = source.text[chunk.begin:program.unit.place(entry)[1]]
    if l.clang_Cursor_getStorageClass(entry) != cl.STATIC and not re.search(r"\binline\b|__inline", before):
        return name, ""
    params = ", ".join(f"{p.spelled} {'' if p.name.startswith('#') else p.name}_{i}" for i, p in enumerate(launch.parameters))
    values = ", ".join(f"{'' if p.name.startswith('#') else p.name}_{i}" for i, p in enumerate(launch.parameters))
    return f"{name}_entry", f"\nvoid {name}_entry({params or 'void'})\n{{\n    {name}({values});\n}}\n"


def linked(program, entry):
    """`extern "C"` in front of a kernel that has it not, and the clauses of its launch."""
    file, at = program.unit.place(entry)[:2]
    chunk = program.chunk_at(file, at)
    text = program.source(file).text[chunk.begin:at]
    if "__global__" not in text:
        raise Refused(f"{program.where(entry)}: error: {program.unit.name(entry)} is no __global__ function")
    return None if re.search(r'extern\s+"C"', text) else chunk


def clauses_of(text, program, launch, request):
    """grid, block and smem.  --args may also name variables of the call; what is none of either is refused."""
    given = request.get("launch")
    made = None if given else Configuration(text, request["function"], launch, program.constant)
    launch.refuse_names(set(launch.host) - (made.used if made else set()))
    return given or made.clauses()


def read(request):
    """(program, flags)"""
    flags = Flags(request.get("flags", ""))
    sources = [*request["sources"], *([request["with"]] if request.get("with") else [])]
    for path in sources:
        if not os.path.isfile(path):
            raise Refused(f"{path}: no such file")
    cuda = sources[0].endswith((".cu", ".cuh"))
    roots = [request[k] for k in ("in",) if request.get(k)] + [os.path.dirname(os.path.realpath(s)) for s in sources] + flags.folders
    return Program(sources, arguments(flags, cuda), flags.defines, roots, cuda), flags


def texts(request, program, flags, entry, launch):
    """(slice, library, what is on record)"""
    own = Flags(request.get("library_flags") or request.get("flags", ""))
    clauses, more, name = "", "", request["function"]
    if program.cuda:
        program.linked, program.kernel = linked(program, entry), name
        whole = "\n".join(program.source(s).text for s in program.sources)
        clauses = clauses_of(whole, program, launch, request)
    else:
        name, more = wrapper(program, entry, launch, name)
    body, taken, upstream, edits = program.slice()
    requires = "".join(f"//! require {r.strip()}\n" for r in request.get("require", "").split(";") if r.strip())
    line = launch.line(name, clauses)
    with_file = os.path.realpath(request["with"]) if request.get("with") else ""
    added = [f"{more.strip().count(chr(10)) + 1} lines: {name}, which can be launched"] * bool(more)
    added += [f"{os.path.basename(with_file)}, which is not the library's"] * bool(with_file)
    files = list(dict.fromkeys(c.file for c in program.kept.values() if c.file != with_file))
    licence = licence_of(request, program, files)
    text = head(request, added, taken, upstream, edits, licence)
    kernel = f"{flags.directive()}{requires}//! {line}\n{text}{''.join(launch.checks())}{body}{more}"
    library = f"{own.directive()}{requires}//! {line}\n{harmless(plain(program.flat()))}{more}"
    return kernel, library, {"licence": licence[0], "licence_from": licence[1], "edits": edits, "upstream_lines": upstream, "launch": line,
                             "from": [{"file": f, "line": n} for f, n in taken], "dropped_flags": flags.dropped}


def made(request):
    program, flags = read(request)
    entry = program.function(request["function"])
    program.reach(entry)
    task = Task(request["definition"], "gpu" if program.cuda else "cpu")
    launch = Launch(program.unit, entry, task, request.get("args", ""), program.where(entry), program.cuda)
    kernel, library, record = texts(request, program, flags, entry, launch)
    for what, whole in {"the slice": kernel, "the library": library}.items():
        if len(whole.encode()) > MOST_BYTES:
            raise Refused(f"{what} has {len(whole.encode())} bytes, and a kernel file at most {MOST_BYTES}")
    return {"source": kernel, "library": library, "surface": "cuda" if program.cuda else "c", **record}


def main():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    sys.setrecursionlimit(10000)
    try:
        print(json.dumps(made(json.load(sys.stdin))))
    except cl.Missing:
        print("libclang is not here: apt-get install libclang-dev", file=sys.stderr)
        return 7
    except (Refused, RecursionError, OSError) as why:
        print(" ".join(str(why).split()), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
