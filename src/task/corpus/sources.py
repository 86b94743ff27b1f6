"""sources.py - folders and installed packages: which files, whose, under which licence.  Nothing is imported.

SPDX-License-Identifier: Apache-2.0
"""
import ast
import hashlib
import importlib.metadata
import os
import re

MOST_FILES = 20000
MOST_BYTES = 1 << 20    # of one file
SKIPPED = {"tests", "test", "testing", "benchmarks", "examples", "__pycache__", "node_modules", "third_party"}
# What may be passed on when changed and mixed with others' work; all else is refused, the unknown too.
PERMISSIVE = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD", "ISC", "PSF-2.0", "Unlicense", "0BSD", "CC0-1.0", "Zlib"}
FORBIDDING = (("AGPL", r"\bA(ffero )?GPL|affero"), ("LGPL", r"\bLGPL|lesser general public"), ("GPL", r"\bGPL|general public licen[sc]e"),
              ("non-commercial", r"non-?commercial|\bCC[- ]BY[- ]NC"), ("proprietary", r"proprietary|all rights reserved\W*$|evaluation only"))
SPOKEN = (("Apache-2.0", r"apache"), ("MIT", r"\bMIT\b|permission is hereby granted, free of charge"),
          ("BSD-3-Clause", r"\bBSD[- ]3|neither the name|\b3-clause bsd|new bsd"), ("BSD-2-Clause", r"\bBSD[- ]2"),
          ("BSD", r"\bBSD\b|redistribution and use in source and binary"), ("ISC", r"\bISC\b"), ("Unlicense", r"unlicense"),
          ("PSF-2.0", r"\bPSF\b|python software foundation"), ("CC0-1.0", r"\bCC0\b"), ("MPL-2.0", r"\bMPL|mozilla public"))


class Missing(Exception):
    """What is not there, in one line; `package` where it is a Python package that this needs."""

    def __init__(self, text, hint="", package=False):
        super().__init__(text)
        self.hint, self.package = hint, package


def licence_of_text(text):
    """What a licence's name or text says it is; '' if that is not known."""
    head = " ".join(text.split())[:3000]
    for name, pattern in (*FORBIDDING[:4], *SPOKEN, *FORBIDDING[4:]):
        if name == "GPL" and re.search(r"apache|\bMIT\b|\bBSD\b", head[:400], re.I):
            continue    # a short notice of several parts begins with its own
        if re.search(pattern, head, re.I | re.M):
            return name
    return ""


class Source:
    """One package or folder; `modules` are read when they are asked for."""

    def __init__(self, name, version, root, folders, licence, licence_text):
        self.name, self.version, self.root, self.folders = name, version, root, folders
        self.licence, self.licence_text = licence, licence_text

    @property
    def is_allowed(self):
        return self.licence in PERMISSIVE

    def files(self):
        """Paths below root, sorted."""
        found = []
        for place in self.folders:
            if os.path.isfile(place):
                found.append(place)
            for folder, folders, files in os.walk(place):
                folders[:] = sorted(f for f in folders if f not in SKIPPED and not f.startswith("."))
                found += [os.path.join(folder, f) for f in sorted(files) if f.endswith(".py") and not f.startswith(("test_", "setup"))]
        return found[:MOST_FILES]

    def stamp(self):
        """Changes when any file does."""
        digest = hashlib.sha256(f"{self.name} {self.version} {self.licence}".encode())
        for path in self.files():
            state = os.stat(path)
            digest.update(f"{path} {state.st_size} {state.st_mtime_ns}".encode())
        return digest.hexdigest()[:16]


def expression_of(metadata):
    said = metadata.get("License-Expression") or ""
    if said:
        parts = [p.strip("() ") for p in re.split(r"\bOR\b", said)]
        return next((p for p in parts if p in PERMISSIVE), None) or ("" if " AND " not in said else joined(said)) or licence_of_text(said) or said
    classifiers = [c.split("::")[-1].strip() for c in metadata.get_all("Classifier") or () if c.startswith("License ::")]
    for text in (*classifiers, (metadata.get("License") or "")[:400]):
        name = licence_of_text(text)
        if name:
            return name
    return ""


def joined(said):
    """MIT AND BSD-3-Clause: all of them must allow it."""
    parts = [p.strip("() ") for p in re.split(r"\bAND\b|\bWITH\b", said)]
    return parts[0] if all(p in PERMISSIVE for p in parts) else "; ".join(parts)


def licence_file(distribution):
    for file in distribution.files or ():
        if re.match(r"(licen[sc]e|copying)\b", file.name, re.I) and not file.name.endswith(".py"):
            try:
                return distribution.locate_file(file).read_text(errors="replace")[:200000]
            except OSError:
                continue
    return ""


def installed(name):
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise Missing(f"{name}: no folder and no installed package of this name") from None
    root = str(distribution.locate_file(""))
    tops = sorted({f.parts[0] for f in distribution.files or () if f.suffix == ".py" and ".." not in f.parts and "." not in f.parts[0].removesuffix(".py")})
    folders = [os.path.join(root, t) for t in tops if t not in SKIPPED]
    text = licence_file(distribution)
    licence = expression_of(distribution.metadata) or licence_of_text(text)
    return Source(distribution.metadata["Name"], distribution.version, root, folders, licence, text)


def folder(path):
    path = os.path.abspath(path)
    text, at = "", path
    for _ in range(4):    # of the folder, or of the project that it is part of
        names = sorted(f for f in os.listdir(at) if re.match(r"(licen[sc]e|copying)\b", f, re.I) and os.path.isfile(os.path.join(at, f)))
        if names:
            with open(os.path.join(at, names[0]), errors="replace") as file:
                text = file.read(200000)
            break
        if os.path.exists(os.path.join(at, ".git")) or at == "/":
            break
        at = os.path.dirname(at)
    root = path
    while os.path.exists(os.path.join(root, "__init__.py")):
        root = os.path.dirname(root)
    return Source(os.path.basename(path), "0", root, [path], licence_of_text(text), text)


def opened(word):
    return folder(word) if os.path.isdir(word) else installed(word)


# ---- modules -------------------------------------------------------------------------------------------------------------

class Module:
    """A file's text and what each name at its top is bound to, the plainest binding first."""

    def __init__(self, source, path):
        self.source, self.path = source, path
        relative = os.path.relpath(path, source.root)[:-3].replace(os.sep, ".")
        self.is_package = relative.endswith("__init__")
        self.name = relative.removesuffix(".__init__")
        self.error, self.bound, self.stars, self.tree = "", {}, [], None
        self.read()

    def read(self):
        try:
            if os.path.getsize(self.path) > MOST_BYTES:
                self.error = f"a file of more than {MOST_BYTES} bytes"
                return
            with open(self.path, encoding="utf-8", errors="strict") as file:
                self.text = file.read()
            self.tree, self.lines = ast.parse(self.text), self.text.splitlines()
        except (SyntaxError, ValueError, OSError, RecursionError) as error:
            self.error = f"not Python: {type(error).__name__}"
            return
        self.collect(self.tree.body, 0)
        self.bound = {name: [n for _, _, n in sorted(found, key=lambda f: f[:2])] for name, found in self.bound.items()}

    def bind(self, name, rank, node):
        self.bound.setdefault(name, []).append((rank, -node.lineno, node))

    def collect(self, body, rank):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.bind(node.name, rank, node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in names_stored(target):
                        self.bind(name, rank, node)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    if alias.name == "*":
                        self.stars.append(node)
                    else:
                        self.bind(alias.asname or alias.name.split(".")[0], rank, node)
            elif isinstance(node, ast.If):
                self.collect(node.body, rank + 1)
                self.collect(node.orelse, rank + 2)
            elif isinstance(node, ast.Try):
                self.collect(node.body, rank + 1)
                for handler in node.handlers:
                    self.collect(handler.body, rank + 3)
            else:    # for, while, with, +=: what is bound there is made by running
                for name in names_stored(node):
                    self.bind(name, rank + 9, node)

    def absolute(self, node):
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        keep = len(parts) - (node.level - 1 if self.is_package else node.level)
        return ".".join(parts[:max(keep, 0)] + ([node.module] if node.module else []))


def names_stored(node):
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


class Modules:
    """Those of one source, by name, each read once."""

    def __init__(self, source):
        self.source, self.by_name, self.paths, self.stripped, self.tops = source, {}, {}, {}, set()
        for path in source.files():
            relative = os.path.relpath(path, source.root)[:-3].replace(os.sep, ".")
            self.paths[relative.removesuffix(".__init__")] = path

    def find(self, name):
        if name not in self.by_name:
            path = self.paths.get(name)
            self.by_name[name] = Module(self.source, path) if path else None
        found = self.by_name[name]
        return found if found and found.tree else None

    def is_ours(self, name):
        if not self.tops:
            for path in self.paths:
                parts = path.split(".")
                self.tops.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
        return name in self.tops

    def at_hand(self, module, nodes):
        """Without imports of other packages, where something else has the name too."""
        own = [n for n in nodes if not isinstance(n, ast.ImportFrom) or n.level or (n.module or "").split(".")[0] == "torch" or self.is_ours(n.module or "")]
        return own or nodes

    def lookup(self, module, name, depth=0):
        """(module, node, name there) of what a name of a module is in the end: a definition, or an import from elsewhere."""
        if depth > 12:
            return None
        for node in self.at_hand(module, module.bound.get(name, ())):
            if not isinstance(node, ast.ImportFrom):
                return module, node, name
            home = module.absolute(node)
            original = next(a.name for a in node.names if (a.asname or a.name) == name)
            if not self.is_ours(home):
                return module, node, name
            inner = self.find(home)
            found = inner and inner is not module and self.lookup(inner, original, depth + 1)
            if found:
                return found
            if self.is_ours(f"{home}.{original}"):
                return module, node, name    # a module as an object
        for star in module.stars:
            inner = self.find(module.absolute(star))
            found = inner and inner is not module and self.lookup(inner, name, depth + 1)
            if found:
                return found
        return None
