"""The text of a file without klineage in it.  SPDX-License-Identifier: Apache-2.0"""
import ast


def undecorated(text):
    """The text of a file without this decorator, and without its imports of klineage, which the trusted runner does not have.

    Everything else stays in its line."""
    tree, lines = ast.parse(text), text.encode().splitlines(True)
    ours = {name for node in ast.walk(tree) for name in decorators_of(node)}
    gone = []    # (node, columns before it that go too, what comes in its place)
    for node in ast.walk(tree):
        gone += [(d, d.col_offset, "") for d in getattr(node, "decorator_list", ()) if ast.unparse(d).split("(")[0] in ours]
        if isinstance(node, ast.ImportFrom) and is_klineage(node.module or "") and not node.level:
            gone.append((node, 0, "pass"))
        if isinstance(node, ast.Import) and any(is_klineage(a.name) for a in node.names):
            others = [a for a in node.names if not is_klineage(a.name)]
            gone.append((node, 0, ast.unparse(ast.Import(others)) if others else "pass"))
    for node, before, instead in sorted(gone, key=lambda g: (g[0].lineno, g[0].col_offset), reverse=True):
        first, last = node.lineno - 1, node.end_lineno - 1
        head, tail = lines[first][:node.col_offset - before], lines[last][node.end_col_offset:]
        lines[first:last + 1] = [head + instead.encode() + b"\n" * (last - first) + tail]
        lines = b"".join(lines).splitlines(True)
    return b"".join(lines).decode()


def is_klineage(module):
    return module.split(".")[0] == "klineage"


def decorators_of(node):
    """What klineage.optimize is called after this import."""
    if isinstance(node, ast.Import):
        return [f"{a.asname or a.name}.optimize" for a in node.names if a.name == "klineage"]
    if isinstance(node, ast.ImportFrom) and node.module == "klineage":
        return [a.asname or a.name for a in node.names if a.name == "optimize"]
    return []
