"""source.py - modules, found on the path and read, never imported.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import os
import sys

MOST_BYTES = 4 << 20    # of a module's text
class Refused(Exception):
    """Text with its place."""

    def __init__(self, module, node, text):
        super().__init__(text)
        self.path = module.path if module else None
        self.line, self.column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1


class Module:
    def __init__(self, name, path, package):
        self.name, self.path, self.package = name, path, package
        with open(path, "rb") as f:
            self.bytes = f.read(MOST_BYTES + 1)
        if len(self.bytes) > MOST_BYTES:
            raise Refused(self, None, f"more than {MOST_BYTES} bytes")
        try:
            self.tree = ast.parse(self.bytes, path)
        except (SyntaxError, ValueError) as error:
            raise Refused(self, at(getattr(error, "lineno", 1), getattr(error, "offset", 1)),
                          f"not Python: {getattr(error, 'msg', error)}") from None
        self.bound = {}    # name: its definitions with the conditions that they stand under
        self.collect(self.tree.body, ())

    def collect(self, body, conditions):
        for node in body:
            if isinstance(node, ast.If):
                self.collect(node.body, conditions + ((node.test, True),))
                self.collect(node.orelse, conditions + ((node.test, False),))
            elif isinstance(node, ast.Try):
                self.collect(node.body, conditions + ((node, True),))
                for handler in node.handlers:
                    self.collect(handler.body, conditions + ((node, False),))
            elif isinstance(node, ast.With):
                self.collect(node.body, conditions)
            else:
                for name in bound_names(node):
                    self.bound.setdefault(name, []).append((conditions, node))

    def absolute(self, node):
        """The module that `from ... import` names."""
        if not node.level:
            return node.module
        parts = self.name.split(".")
        parts = parts[:len(parts) - (node.level - 1 if self.package else node.level)]
        return ".".join(parts + ([node.module] if node.module else []))


def at(line, column):
    node = ast.Pass()
    node.lineno, node.col_offset = line or 1, max((column or 1) - 1, 0)
    return node


def bound_names(node):
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [a.asname or a.name.split(".")[0] for a in node.names]
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
    return []


class Modules:
    """By name, each read once; None where there is no such module in Python."""

    def __init__(self):
        self.path = [p for p in sys.path if p] + [os.getcwd()]    # what is installed comes first
        self.known = {}

    def find(self, name):
        """Folders are searched as Python's own importer does, without running the packages around."""
        if name not in self.known:
            path, package = self.located(name)
            self.known[name] = Module(name, path, package) if path else None
        return self.known[name]

    def located(self, name):
        """(file, is it a package); the file is None where there is none."""
        folders = self.path
        for part in name.split("."):
            bases = [os.path.join(folder, part) for folder in folders]
            whole = next((b for b in bases if os.path.isfile(os.path.join(b, "__init__.py"))), None)
            plain = next((b + ".py" for b in bases if os.path.isfile(b + ".py")), None)
            folders = [whole] if whole else [b for b in bases if not plain and os.path.isdir(b)]
        return (os.path.join(whole, "__init__.py"), True) if whole else (plain, False)

    def of_file(self, path):
        """A file by its path; inside a package it keeps the name that it has there."""
        path = os.path.abspath(path)
        folder, parts = os.path.dirname(path), [os.path.basename(path)[:-3]]
        while os.path.exists(os.path.join(folder, "__init__.py")):
            parts.insert(0, os.path.basename(folder))
            folder = os.path.dirname(folder)
        package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if package else parts)
        self.path.insert(0, folder)
        self.known[name] = Module(name, path, package)
        return self.known[name]
