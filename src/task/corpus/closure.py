"""closure.py - a class or function with all that it names, as one file that needs nothing but torch and Python.

From the syntax alone: definitions are followed by name through the modules of their package.  What would have to be
run to be known (a name bound in a loop, a table that a function builds at import) refuses, and so does what opens
files, asks the system or the network, or belongs to another package.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import builtins
import copy
import textwrap

MOST_DEFINITIONS = 60
MOST_LINES = 1200
ALLOWED = {"torch", "math", "typing", "typing_extensions", "functools", "itertools", "collections", "dataclasses", "enum", "abc", "numbers",
           "operator", "copy", "warnings", "types", "logging", "contextlib", "string", "inspect", "re", "random", "numpy", "einops", "__future__"}
SYSTEM = {"os", "sys", "subprocess", "socket", "shutil", "ctypes", "pathlib", "pickle", "urllib", "requests", "multiprocessing", "threading", "tempfile", "importlib", "io",
          "signal", "http", "asyncio", "builtins", "gc", "mmap", "glob"}
FORBIDDEN = {"open": "opens files", "exec": "runs text", "eval": "runs text", "compile": "runs text", "__import__": "imports by name", "input": "asks a person",
             "breakpoint": "starts a debugger", "exit": "ends the process", "quit": "ends the process"}
FILES = {"torch.load": "needs weights or files", "torch.save": "writes files", "torch.hub": "needs weights or files", "load_state_dict_from_url": "needs weights or files",
         "from_pretrained": "needs weights or files", "hf_hub_download": "needs weights or files", "load_url": "needs weights or files",
         "torch.distributed": "needs several processes", "torch.ops.load_library": "loads a library", "torch.utils.cpp_extension": "builds an extension",
         "torch.from_file": "needs weights or files", "torch.multiprocessing": "needs several processes"}
DROPPED = {"script", "compile", "export", "ignore", "inference_mode", "no_grad", "register_notrace_module", "register_notrace_function", "register_model", "custom_fwd",
           "custom_bwd", "overload", "wrap", "use_kernel_forward_from_hub", "use_kernel_func_from_hub", "use_kernelized_func", "maybe_allow_in_graph", "deprecated",
           "add_start_docstrings", "add_start_docstrings_to_model_forward", "replace_return_docstrings", "auto_docstring", "compatibility", "register_to_config",
           "unused", "experimental", "jit", "disable", "script_if_tracing", "apply_forward_hook", "handle_torch_function", "boolean_dispatch", "compile_ignored",
           "register_module", "beartype", "typecheck", "input_guard", "contiguous", "register_vision_block", "can_return_tuple", "check_model_inputs", "override",
           "dynamic_rope_update", "deprecate_kwarg", "torch_jit_script_if_tracing", "set_module", "once", "allow_in_graph", "dispatch", "compileable"}
KEPT_CALLS = {"partial", "namedtuple", "TypeVar", "NewType", "dict", "list", "tuple", "set", "frozenset", "range", "float", "int", "bool", "str", "len", "min", "max",
              "OrderedDict", "NamedTuple", "hasattr", "getattr", "dir", "isinstance", "get", "slice", "field", "defaultdict", "object", "sorted", "zip", "enumerate", "sum", "abs", "round", "version", "ParamSpec"}
BUILTINS = set(dir(builtins)) | {"__name__", "__file__", "__class__", "__all__"}


class Refused(Exception):
    """The reason, and what it is about."""

    def __init__(self, reason, detail=""):
        super().__init__(reason)
        self.reason, self.detail = reason, detail


def dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


# ---- free names ----------------------------------------------------------------------------------------------------------

class Free(ast.NodeVisitor):
    """Names that a definition takes from its module."""

    def __init__(self):
        self.scopes, self.names = [], {}

    def is_local(self, name):
        return any(name in s for s in self.scopes)

    def visit_Name(self, node):
        if isinstance(node.ctx, ast.Load) and not self.is_local(node.id):
            self.names.setdefault(node.id, node)

    def function(self, node):
        for part in [*getattr(node, "decorator_list", ()), *node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(part)
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.vararg, node.args.kwarg])]
        body = node.body if isinstance(node.body, list) else [node.body]
        self.scopes.append({a.arg for a in every} | {name for part in body for name in assigned(part)})
        for part in body:
            self.visit(part)
        self.scopes.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = function

    def comprehension(self, node):
        self.scopes.append({n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)})
        self.generic_visit(node)
        self.scopes.pop()

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension


def assigned(node):
    """Bound in a function's own scope."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (a.asname or a.name.split(".")[0] for a in node.names)
    if isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return
    for child in ast.iter_child_nodes(node):
        yield from assigned(child)


# ---- what is left out ----------------------------------------------------------------------------------------------------

class Plain(ast.NodeTransformer):
    """Without annotations, docstrings and decorators that change no value."""

    def __init__(self):
        self.fields = False

    def visit_FunctionDef(self, node):
        node.returns = None
        node.decorator_list = [d for d in node.decorator_list if (dotted(d.func if isinstance(d, ast.Call) else d) or "?").split(".")[-1] not in DROPPED]
        for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.vararg, node.args.kwarg])]:
            a.annotation = None
        before, self.fields = self.fields, False
        self.generic_visit(node)
        self.fields = before
        node.body = without_doc(node.body)
        return node

    def visit_ClassDef(self, node):
        node.decorator_list = [d for d in node.decorator_list if (dotted(d.func if isinstance(d, ast.Call) else d) or "?").split(".")[-1] not in DROPPED]
        before = self.fields
        self.fields = any("dataclass" in ast.unparse(d) for d in node.decorator_list) or any("NamedTuple" in ast.unparse(b) for b in node.bases)
        self.generic_visit(node)
        self.fields = before
        node.body = without_doc(node.body)
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if self.fields:
            node.annotation = ast.Name("object", ast.Load())
            return node
        return ast.copy_location(ast.Assign([node.target], node.value), node) if node.value else None

    def visit_Import(self, node):
        """Where a definition imports what its file does not have, it fails as it would where that is not installed."""
        home = node.names[0].name if isinstance(node, ast.Import) else "." * node.level + (node.module or "")
        if home.split(".")[0] in SYSTEM:
            raise Refused("asks the system, files or the network", home)
        if home.split(".")[0] in ALLOWED:
            return node
        names = [a.asname or a.name.split(".")[0] for a in node.names]
        return [*ast.parse(f"raise ImportError({home!r})").body, *ast.parse("".join(f"{n} = None\n" for n in names if n != "*")).body]

    visit_ImportFrom = visit_Import


def without_doc(body):
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and isinstance(body[0].value.value, str):
        body = body[1:]
    return body or [ast.Pass()]


def again(module, node):
    """The same definition, parsed once more from its lines: many times as fast as a copy."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    try:
        body = ast.parse(textwrap.dedent("\n".join(module.lines[first - 1:node.end_lineno]))).body
    except SyntaxError:
        body = []
    return body[0] if len(body) == 1 and type(body[0]) is type(node) else copy.deepcopy(node)


def plain(module, node):
    return ast.fix_missing_locations(Plain().visit(again(module, node)))


class Renamed(ast.NodeTransformer):
    def __init__(self, names, attributes):
        self.names, self.attributes = names, attributes

    def visit_Name(self, node):
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_Attribute(self, node):
        text = dotted(node)
        if text in self.attributes:
            return ast.copy_location(ast.Name(self.attributes[text], node.ctx), node)
        return self.generic_visit(node)


# ---- the closure ---------------------------------------------------------------------------------------------------------

class Closure:
    def __init__(self, modules):
        self.modules = modules
        self.imports, self.items, self.taken, self.order, self.files = {}, {}, {}, [], {}

    def named(self, module, name):
        """What is emitted for a definition: its own name, or another where that is taken."""
        wanted, n = name, 1
        while self.taken.get(wanted, (module, name)) != (module, name):
            n += 1
            wanted = f"{name}_{n}"
        self.taken[wanted] = (module, name)
        return wanted

    def add(self, module, name):
        """Emit what (module, name) is; its name in the file."""
        found = self.modules.lookup(module, name)
        if not found:
            raise Refused("a name that is not found in its package", name)
        home, node, own = found
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return self.imported(home, node, own)
        key = (home.name, own)
        if key not in self.items:
            self.items[key] = self.named(*key)
            if len(self.items) > MOST_DEFINITIONS:
                raise Refused(f"needs more than {MOST_DEFINITIONS} definitions")
            self.files.setdefault(home.path, node.lineno)
            self.emit(home, node, own, self.items[key])
        return self.items[key]

    def imported(self, module, node, name):
        """An import that stays: of torch or of Python itself."""
        alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
        home = module.absolute(node) if isinstance(node, ast.ImportFrom) else alias.name
        root = home.split(".")[0]
        if root not in ALLOWED:
            if self.modules.is_ours(home):
                raise Refused("takes a module as an object", f"{home}.{alias.name}")
            raise Refused("asks the system, files or the network" if root in SYSTEM else "needs another package", root)
        whole = f"{home}.{alias.name}" if isinstance(node, ast.ImportFrom) else home
        for text, why in FILES.items():
            if whole == text or whole.startswith(text + ".") or alias.name == text:
                raise Refused(why, whole)
        emitted = self.named("import " + whole + (" as" if alias.asname else ""), name)
        if isinstance(node, ast.ImportFrom):
            self.imports[emitted] = f"from {home} import {alias.name}" + (f" as {emitted}" if emitted != alias.name else "")
        elif alias.asname or emitted != name:
            self.imports[emitted] = f"import {home} as {emitted}"
        else:
            self.imports[f"{emitted} {home}"] = f"import {home}"
        return emitted

    def emit(self, module, node, name, emitted):
        text, used_names, unparsed = self.stripped(module, node, name)
        names, attributes = {}, {}
        for used in used_names:
            self.follow(module, used, text, names, attributes, emitted, name)
        if names or attributes or emitted != name:
            text = copy.deepcopy(text)
            if isinstance(text, (ast.FunctionDef, ast.ClassDef)):
                text.name = emitted
            else:
                names[name] = emitted
            self.check_shadows(text, names)
            unparsed = ast.unparse(ast.fix_missing_locations(Renamed(names, attributes).visit(text)))
        self.order.append(unparsed)
        if sum(t.count("\n") + 1 for t in self.order) > MOST_LINES:
            raise Refused(f"needs more than {MOST_LINES} lines")

    def stripped(self, module, node, name):
        """(definition, names it takes from its module, its text), the same for every candidate."""
        key = (module.name, name, node.lineno)
        known = self.modules.stripped.get(key)
        if known is None:
            try:
                known = self.strip(module, node, name)
            except Refused as refusal:
                known = refusal
            self.modules.stripped[key] = known
        if isinstance(known, Refused):
            raise known
        if known[3]:
            self.imports["logging logging"] = "import logging"
        return known[:3]

    def strip(self, module, node, name):
        logs = False
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            text = plain(module, node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            text, logs = self.assignment(node, name)
        else:
            raise Refused("code that runs at import", f"{name} is bound by `{type(node).__name__.lower()}`")
        self.forbid(text)
        free = Free()
        free.visit(text)
        return text, sorted(free.names), ast.unparse(text), logs

    def follow(self, module, used, text, names, attributes, emitted, name):
        if used == name:
            if emitted != name:
                names[name] = emitted
            return
        found = self.modules.lookup(module, used)
        if not found:
            if used in FORBIDDEN:
                raise Refused(FORBIDDEN[used], used)
            if used not in BUILTINS and used not in ("logging",):
                raise Refused("a name that is not found in its package", used)
            return
        home, node, own = found
        whole = self.module_object(home, node, own)
        if whole:
            self.through(whole, used, text, attributes)
            return
        other = self.add(module, used)
        if other != used:
            names[used] = other

    def module_object(self, module, node, used):
        """The package's own module that a name stands for, if it does."""
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            return ""
        alias = next((a for a in node.names if (a.asname or a.name.split(".")[0]) == used), None)
        if alias is None:
            return ""
        whole = f"{module.absolute(node)}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name if alias.asname else used
        root = whole.split(".")[0]
        return whole if root not in ALLOWED and self.modules.is_ours(whole) else ""

    def through(self, whole, used, text, attributes):
        """`layers.Norm` becomes `Norm`."""
        for node in ast.walk(text):
            path = dotted(node) if isinstance(node, ast.Attribute) else ""
            if not path.startswith(used + "."):
                continue
            parts = path.split(".")[1:]
            home = whole
            while len(parts) > 1 and self.modules.is_ours(f"{home}.{parts[0]}"):
                home, parts = f"{home}.{parts[0]}", parts[1:]
            module = self.modules.find(home)
            if module and self.modules.lookup(module, parts[0]):
                attributes[path if len(parts) == 1 else path.rsplit(".", len(parts) - 1)[0]] = self.add(module, parts[0])

    def assignment(self, node, name):
        value = node.value
        call = value.func if isinstance(value, ast.Call) else None
        logs = call is not None and dotted(call).split(".")[-1].lower() in ("getlogger", "get_logger")
        if logs:
            value = ast.parse("logging.getLogger('corpus')", mode="eval").body
        for part in ast.walk(value):
            if isinstance(part, ast.Call) and not self.is_harmless(part):
                raise Refused("code that runs at import", f"{name} = {ast.unparse(node.value)[:80]}")
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) == 1 and isinstance(targets[0], ast.Name):    # a number with a type is no parameter of the problem
            made = ast.AnnAssign(ast.Name(name, ast.Store()), ast.Name("object", ast.Load()), copy.deepcopy(value), 1)
            return ast.fix_missing_locations(ast.copy_location(made, node)), logs
        return ast.fix_missing_locations(copy.deepcopy(node)), logs

    def is_harmless(self, node):
        """Values that Python and torch make, classes, and what a factory of the package makes of plain constants."""
        text = dotted(node.func)
        last, root = text.split(".")[-1], text.split(".")[0]
        if last in KEPT_CALLS or root in ("torch", "math", "nn", "F", "typing", "logging") or last[:1].isupper():
            return True
        arguments = [*node.args, *(k.value for k in node.keywords)]
        return bool(arguments) and text.isidentifier() and text not in FORBIDDEN and all(isinstance(a, ast.Constant) for a in arguments)

    def forbid(self, tree):
        for node in ast.walk(tree):
            text = dotted(node) if isinstance(node, (ast.Attribute, ast.Name)) else ""
            if isinstance(node, ast.Attribute):
                for name, why in FILES.items():
                    if text == name or text.startswith(name + ".") or node.attr == name:
                        raise Refused(why, text or node.attr)
            if isinstance(node, ast.Global):
                raise Refused("keeps state between calls", ", ".join(node.names))
            if isinstance(node, (ast.AsyncFunctionDef, ast.Await)):
                raise Refused("is asynchronous")

    def check_shadows(self, tree, names):
        stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        stored |= {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
        both = stored & set(names)
        if both:
            raise Refused("a name has two meanings in it", sorted(both)[0])

    def text(self):
        imports = sorted(set(self.imports.values()))
        return "\n".join(imports) + "\n\n\n" + "\n\n\n".join(self.order) + "\n"


def closed(modules, module, name, reserved=()):
    """(text of one file, name in it, {file: line}); none of the reserved names is defined in it."""
    closure = Closure(modules)
    closure.taken.update(dict.fromkeys(reserved, ("", "")))
    emitted = closure.add(module, name)
    return closure.text(), emitted, closure.files
