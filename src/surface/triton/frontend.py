"""frontend.py - a candidate's Python text to PTX, and to what Triton decided of each launch.

A script of src/backend/compile_server.py: asked for {arch, defines, launches, text}, it answers with
{kernel.ptx, completion (docs/formats/completion.md), assembler: the package's own for it}.  Runs confined,
without torch, driver or GPU.  A refusal is a line `kernel.py:LINE:COLUMN: error: ...` on stderr.

Of the text only imports of Triton, constants and @triton.jit functions are read.  Nothing of it is
called by us, but Triton's code generator calls whatever Python object a kernel's body names; so
names, attributes and statements are held against lists.  The jail is what holds; the lists keep
the meaning of "compiled from this text".
SPDX-License-Identifier: Apache-2.0
"""
import ast
import functools
import importlib
import itertools
import json
import linecache
import operator
import os
import re
import sys
import types

FILE = "kernel.py"


class Refused(Exception):
    """Text with its place."""

    def __init__(self, node, text):
        super().__init__(text)
        self.line, self.column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1


# ---- what a file may name ------------------------------------------------------------------------

# Modules that may be imported; None: what they export, else these names alone.
MODULES = {
    "triton": {"cdiv", "next_power_of_2", "language", "jit"},
    "triton.language": None,
    "triton.language.math": None,
    "triton.language.standard": None,
    "triton.language.extra": {"libdevice", "cuda"},
    "triton.language.extra.libdevice": None,
    "triton.language.extra.cuda": {"libdevice", "num_threads", "num_warps"},
    "triton.language.extra.cuda.libdevice": None,
    "triton.experimental": {"gluon"},
    "triton.experimental.gluon": {"jit", "language"},
    "triton.experimental.gluon.language": None,
    "triton.experimental.gluon.language.nvidia": {"ampere", "hopper"},
    "triton.experimental.gluon.language.nvidia.ampere": {"async_copy", "mma_v2"},
    "triton.experimental.gluon.language.nvidia.ampere.async_copy": None,
    "triton.experimental.gluon.language.nvidia.hopper": {
        "async_copy", "fence_async_shared", "mbarrier", "mma_v2", "tma", "warpgroup_mma", "warpgroup_mma_wait"},
    "triton.experimental.gluon.language.nvidia.hopper.mbarrier": None,
    "triton.experimental.gluon.language.nvidia.hopper.tma": None,
}
BUILTINS = set("range min max len int float bool isinstance abs tuple list print str sum".split())
# Methods and fields of the values that a kernel computes with.
ATTRIBUTES = set("""
    T to shape dtype element_ty type numel value handle load store gather scatter reshape view
    permute trans broadcast_to cast sum max min argmax argmin cumsum cumprod sort expand_dims item
    exp exp2 log log2 sqrt rsqrt abs sin cos sigmoid softmax ravel flip split join block_shape
    strides logical_not logical_and logical_or reduce associative_scan append index
    atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_cas atomic_xchg
    primitive_bitwidth int_bitwidth fp_mantissa_width is_fp8 is_fp16 is_bf16 is_fp32 is_fp64
    is_floating is_standard_floating layout slice is_int is_int1 is_int8 is_int16 is_int32 is_int64 is_uint8
    is_uint16 is_uint32 is_uint64 is_int_signed is_int_unsigned is_bool is_block is_ptr is_fp8e4nv
    is_fp8e5 get_block_shapes advance histogram""".split())
# Bitcode of others, and what Triton keeps for its own tests.
NOT_FOR_KERNELS = {"extern_elementwise", "dispatch", "core", "semantic"}
STATEMENTS = (ast.Import, ast.ImportFrom, ast.Lambda, ast.ClassDef, ast.Global, ast.Nonlocal,
              ast.AsyncFunctionDef, ast.FunctionDef, ast.Await, ast.Yield, ast.YieldFrom, ast.Try,
              ast.With, ast.Raise, ast.Delete, ast.NamedExpr)


def dotted(node):
    """`a.b.c` as ("a", ["b", "c"]); the root is None where it is no name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else None), parts[::-1]


def exported(name):
    if MODULES[name] is not None:
        return MODULES[name]
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    plain = {n for n in names if not isinstance(getattr(module, n, None), types.ModuleType)}
    return (plain | {"math", "extra", "nvidia"}) - NOT_FOR_KERNELS


def check_chain(node, module, parts):
    """Every step from a module on is one that it exports; so no other way leads to its assembly."""
    for part in parts:
        if not isinstance(module, types.ModuleType):
            if part not in ATTRIBUTES:
                raise Refused(node, f"'.{part}' is no attribute of a value of Triton's")
            continue
        name = watch_assembly(module).__name__
        if name not in MODULES or part not in exported(name):
            raise Refused(node, f"'{part}' of {name} is not for kernels")
        module = getattr(module, part, None)


# ---- constants -----------------------------------------------------------------------------------

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
             ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}
MOST_CONSTANTS = 256    # values of all tuples of a file; a table of answers is no constant


def arithmetic(node, values):
    left, right = constant(node.left, values), constant(node.right, values)
    small = all(isinstance(v, (int, float)) and abs(v) < 2**62 for v in (left, right))
    if not small:
        raise Refused(node, "not a constant expression")
    try:
        return OPERATORS[type(node.op)](left, right)
    except ArithmeticError:
        raise Refused(node, "not a constant expression") from None


def leaves(value):
    value = getattr(value, "value", value)
    return sum(map(leaves, value)) if isinstance(value, tuple) else 1


def constant(node, values):
    """The value of a literal, of arithmetic on literals, of tl.constexpr(...) or of a type."""
    import triton.language as tl
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(constant(e, values) for e in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = constant(node.operand, values)
        if isinstance(value, (int, float)):
            return -value
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return arithmetic(node, values)
    kept = (int, float, bool, str, tuple, tl.constexpr, tl.dtype)
    if isinstance(node, ast.Name) and isinstance(values.get(node.id), kept):
        return values[node.id]
    root, parts = dotted(node)
    if len(parts) == 1 and values.get(root) is tl and isinstance(getattr(tl, parts[0], None), tl.dtype):
        return getattr(tl, parts[0])
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        root, parts = dotted(node.func)
        if values.get(root) is tl and parts == ["constexpr"]:
            return tl.constexpr(constant(node.args[0], values))
        text = node.args[0]
        if root == "float" and not parts and isinstance(text, ast.Constant):
            return float(text.value)
    raise Refused(node, "not a constant expression")


# ---- functions -----------------------------------------------------------------------------------

def is_jit(decorator):
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    root, parts = dotted(target)
    return (root, parts) in (("triton", ["jit"]), ("gluon", ["jit"]), ("jit", []))


def jit_options(function):
    """Those that change a signature; anything else of @triton.jit(...) is for running."""
    known = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline")
    for decorator in function.decorator_list:
        if is_jit(decorator) and isinstance(decorator, ast.Call):
            try:
                return {k.arg: ast.literal_eval(k.value) for k in decorator.keywords if k.arg in known}
            except ValueError:
                raise Refused(decorator, "an option of @triton.jit is not a constant") from None
    return {}


def check_signature(function, values):
    args = function.args
    if args.vararg or args.kwarg:
        raise Refused(function, "a kernel's parameters are named one by one")
    for a in args.posonlyargs + args.args + args.kwonlyargs:
        root, parts = dotted(a.annotation) if a.annotation else (None, [])
        plain = a.annotation is None or isinstance(a.annotation, ast.Constant)
        if not plain and not (root and (not parts or len(parts) <= 3)):
            raise Refused(a.annotation, "an annotation is a name such as tl.constexpr")
        if not plain and root not in values and root not in ("int", "float", "bool", "constexpr"):
            raise Refused(a.annotation, f"'{root}' is not imported from triton")
    for default in args.defaults + [d for d in args.kw_defaults if d]:
        constant(default, values)


def check_body(function, values, functions, modules):
    bound = {a.arg for a in function.args.args + function.args.kwonlyargs}
    bound |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in (n for statement in function.body for n in ast.walk(statement)):
        if isinstance(node, STATEMENTS):
            raise Refused(node, f"{type(node).__name__.lower()} has no place in a kernel")
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if not (node.id in bound or node.id in functions or node.id in values or node.id in BUILTINS):
                raise Refused(node, f"'{node.id}' is no parameter, local, constant, kernel or name of Triton")
        if isinstance(node, ast.Attribute):
            root, parts = dotted(node)
            if any(p.startswith("_") for p in parts):
                raise Refused(node, f"'.{node.attr}' is private")
            if root in modules and root not in bound:
                check_chain(node, modules[root], parts)
            elif node.attr not in ATTRIBUTES:
                raise Refused(node, f"'.{node.attr}' is no attribute of a value of Triton's")


def jit_of(function, values):
    """Gluon's jit or Triton's, as the file imported it."""
    import triton
    decorator = next(filter(is_jit, function.decorator_list))
    root, parts = dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
    named = getattr(values.get(root), "jit", None) if parts else values.get(root)
    gluon = sys.modules.get("triton.experimental.gluon")
    return gluon.jit if gluon and named is gluon.jit else triton.jit


def define(function, values):
    """The function object of its text, with its annotations and without its decorators."""
    jit = jit_of(function, values)
    bare = ast.copy_location(ast.FunctionDef(name=function.name, args=function.args, body=function.body,
                                             decorator_list=[], returns=None, type_params=[]), function)
    module = ast.fix_missing_locations(ast.Module(body=[bare], type_ignores=[]))
    exec(compile(module, FILE, "exec"), values)
    values[function.name] = jit(values[function.name], **jit_options(function))


class Source:
    """A file: names that a kernel sees, and what was left out with the reason."""

    def __init__(self, text):
        self.values = {"__builtins__": {"int": int, "float": float, "bool": bool}, "__name__": "kernel"}
        self.modules, self.functions, self.dropped, self.constants = {}, {}, [], 0
        for node in ast.parse(text, FILE).body:
            self.read(node)
        linecache.cache[FILE] = (len(text), None, text.splitlines(True), FILE)
        for function in self.functions.values():
            check_signature(function, self.values)
            check_body(function, self.values, self.functions, self.modules)
        for function in self.functions.values():
            define(function, self.values)

    def read(self, node):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.Import):
            for name in node.names:
                self.take_module(node, name.name, name.asname or name.name.split(".")[0], name.asname)
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                self.take_name(node, name.name, name.asname or name.name)
        elif isinstance(node, ast.FunctionDef) and any(map(is_jit, node.decorator_list)):
            self.functions[node.name] = node
            for decorator in node.decorator_list:
                if not is_jit(decorator):
                    self.drop(decorator, "a decorator that is not triton.jit")
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            self.take_constant(node)
        else:
            self.drop(node, "no kernel, constant or import of triton")

    def drop(self, node, why):
        self.dropped.append((node.lineno, why))

    def take_module(self, node, name, alias, renamed):
        if name not in MODULES:
            return self.drop(node, f"import of {name}")
        self.values[alias] = self.modules[alias] = importlib.import_module(
            name if renamed else name.split(".")[0])

    def take_name(self, node, name, alias):
        full = f"{node.module}.{name}"
        if node.level == 0 and full in MODULES:
            self.values[alias] = self.modules[alias] = importlib.import_module(full)
        elif node.level == 0 and node.module in MODULES and name in exported(node.module):
            self.values[alias] = getattr(watch_assembly(importlib.import_module(node.module)), name)
        else:
            self.drop(node, f"import of {full}")

    def take_constant(self, node):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        try:
            value = constant(node.value, self.values)
        except Refused:
            return self.drop(node, "not a constant")
        self.constants += leaves(value) if leaves(value) > 1 else 0
        if self.constants > MOST_CONSTANTS:
            raise Refused(node, f"tables of more than {MOST_CONSTANTS} values; data belongs into tensors")
        for target in targets:
            if isinstance(target, ast.Name):
                self.values[target.id] = value


# ---- one launch: what fills which parameter -------------------------------------------------------

TYPES = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int64": "i64",
         "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "i1",
         "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"}
DTYPES = {"float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5", "bool": "int1"}


class Launch:
    """One line `launch`, bound to its function: signature, constants, attributes, what is passed."""

    def __init__(self, source, spec, given):
        self.spec, self.source = spec, source
        if spec["entry"] not in source.functions:
            names = " ".join(source.functions) or "none"
            raise Refused(None, f"there is no @triton.jit function '{spec['entry']}'; there are: {names}")
        self.function = source.values[spec["entry"]]
        self.node = source.functions[spec["entry"]]
        self.signature, self.constants, self.attributes, self.passed = {}, {}, {}, []
        for i, p in enumerate(self.function.params):
            self.bind(i, p, self.match(p), given)
        if self.unused:
            raise Refused(self.node, f"{len(self.spec['args'])} arguments, more than '{spec['entry']}' takes, "
                                     f"or a name that it has not")

    def match(self, parameter):
        """The argument by its name, else the next by its place; (index, argument) or None."""
        if not hasattr(self, "unused"):
            self.unused = list(enumerate(self.spec["args"]))
        named = [u for u in self.unused if u[1].get("name") == parameter.name]
        plain = [u for u in self.unused if "name" not in u[1]]
        found = named or (plain if not parameter.is_constexpr else [])
        if not found:
            return None
        self.unused.remove(found[0])
        return found[0]

    def bind(self, i, p, found, given):
        index, arg = found or (None, None)
        if p.is_constexpr or arg is None:
            return self.fold(i, p, self.value_of(p, arg, given))
        if "word" in arg:
            return self.fold(i, p, self.word(arg["word"], p))
        if "dtype" in arg:
            raise Refused(self.node, f"dtype(...) fills a tl.constexpr; '{p.name}' is none")
        by_value = "integer" in arg and not p.do_not_specialize
        if by_value and arg["by"] == 1:
            return self.fold(i, p, 1)
        aligned = "map" not in arg and ("type" in arg or by_value and arg["by"] == 16)
        loose = p.do_not_specialize or getattr(p, "do_not_specialize_on_alignment", False)
        self.signature[p.name] = self.type_of(arg)
        if aligned and not loose:
            self.attributes[(i,)] = [["tt.divisibility", 16]]
        self.passed.append((index, arg))

    def fold(self, i, p, value):
        self.signature[p.name], self.constants[(i,)] = "constexpr", value

    def word(self, text, p):
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise Refused(self.node, f"'{p.name}' gets a value that cannot be read") from None

    def value_of(self, p, arg, given):
        import triton.language as tl
        if arg is None and p.name in given:
            return given[p.name]
        if arg is None and p.has_default:
            return p.default
        if arg is None:
            kind = "constexpr " if p.is_constexpr else ""
            raise Refused(self.node, f"{kind}'{p.name}' has no value: write {p.name}=... in args(...)")
        if "word" in arg:
            return self.word(arg["word"], p)
        if "dtype" in arg:
            return getattr(tl, DTYPES.get(arg["dtype"], arg["dtype"]))
        if "value" not in arg:
            what = "a real input" if "real" in arg else "an address"
            raise Refused(self.node, f"'{p.name}' is a tl.constexpr, which {what} cannot be")
        return arg["value"]

    def type_of(self, arg):
        if "map" in arg:
            return f"tensordesc<{TYPES[arg['type']]}{json.dumps(arg['box'][::-1])}>"
        if "type" in arg:
            return "*" + TYPES[arg["type"]]
        return arg["integer"] if "integer" in arg else TYPES[arg["real"]]

    def options(self):
        named = {"num_warps": "warps", "num_stages": "stages", "num_ctas": "ctas", "maxnreg": "maxnreg"}
        given = {k: self.spec[v] for k, v in named.items() if self.spec[v]}
        return {**given, "enable_fp_fusion": True}    # its default differs from version to version


# ---- bounds on what a body makes Triton do -----------------------------------------------------------

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
DIRECTIVE = re.compile(r"(?<!\w)\.(entry|func|visible|extern|global|const|weak|common|alias|file|loc|section|pragma)\b|#|/\*")
MOST_VISITS = 100_000    # of nodes of the syntax tree, with every round of an unrolled loop and every call


class Bound(Exception):
    """Raised below Triton's code generator, which keeps the place and of an error its repr alone."""

    def __repr__(self):
        return str(self)


def check_assembly(text):
    """Assembly stays inside the function that it is written in."""
    text, depth, least = COMMENT.sub(" ", text), 0, 0
    for c in text:
        depth += (c == "{") - (c == "}")
        least = min(least, depth)
    if DIRECTIVE.search(text) or least < 0 or depth:
        raise Bound("assembly that leaves its function")


def watch_assembly(module):
    """Every text on its way to the assembler, however a kernel put it together."""
    original = getattr(module, "inline_asm_elementwise", None)
    if original is None or hasattr(original, "is_watched"):
        return module

    @functools.wraps(original)
    def inline_asm_elementwise(asm, *args, **named):
        check_assembly(str(getattr(asm, "value", asm)))
        return original(asm, *args, **named)

    inline_asm_elementwise.is_watched = True
    module.inline_asm_elementwise = inline_asm_elementwise
    return module


def watch_unrolling():
    from triton.compiler.code_generator import CodeGenerator
    original, visits = CodeGenerator.visit, itertools.count()

    def visit(self, node):
        if next(visits) > MOST_VISITS:
            raise Bound("unrolled, it is longer than is compiled here")
        return original(self, node)

    CodeGenerator.visit = visit


# ---- Triton's stages ------------------------------------------------------------------------------

def stages_of(backend, options, language):
    stages = {}
    try:
        backend.add_stages(stages, options, language)
    except TypeError:    # up to 3.4
        backend.add_stages(stages, options)
    return stages


def first_module(source, target, options, backend, context):
    generate, modules = backend.get_codegen_implementation(options), backend.get_module_map()
    try:
        return source.make_ir(target, options, generate, modules, context)
    except TypeError:    # up to 3.4
        return source.make_ir(options, generate, modules, context)


def assembler(arch):
    """The package has one for older and one for newer devices; which is for whom differs from version to version."""
    from triton.backends.nvidia.compiler import get_ptxas
    try:
        return os.path.basename(get_ptxas(arch).path)
    except TypeError:    # up to 3.5, which has one
        return os.path.basename(get_ptxas().path)


def source_class(function):
    from triton.compiler import ASTSource
    if not getattr(function, "is_gluon", bool)():
        return ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource
    return GluonASTSource


def to_ptx(launch, arch):
    """triton.compile without its cache folder, its driver and its ptxas: PTX and what it decided."""
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import make_backend
    target = GPUTarget("cuda", arch, 32)
    source = source_class(launch.function)(launch.function, launch.signature, launch.constants, launch.attributes)
    backend = make_backend(target)
    options = backend.parse_options(launch.options())
    context, decided = ir.context(), dict(options.__dict__)
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = first_module(source, target, options, backend, context)
    for name, stage in stages_of(backend, options, source.language).items():
        module = stage(module, decided)
        if name == "ptx":
            if len(re.findall(r"\.entry\b", module)) != 1:
                raise Refused(launch.node, "more than one kernel came out of it")
            return module, decided
    raise Refused(launch.node, "this Triton makes no PTX")


# ---- one text of all launches ---------------------------------------------------------------------

HEADER = re.compile(r"^\s*\.(version|target|address_size)\b.*$", re.M)
SYMBOL = re.compile(r"^\s*(?:\.visible |\.weak )?\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)"
                    r"|^\s*(?:\.visible )?\.(?:global|const)\b[^;={]*?([\w$]+)\s*(?:\[[^;{=]*)?[;=]", re.M)
SHARED = re.compile(r"^\.extern \.shared\b.*;$", re.M)


def renamed(ptx, suffix):
    """Every symbol that a module defines, with a suffix: modules of one file would collide."""
    names = {a or b for a, b in SYMBOL.findall(ptx)}
    word = re.compile(r"(?<![\w$%.])(" + "|".join(map(re.escape, names)) + r")(?![\w$])")
    return word.sub(lambda m: m.group(1) + suffix, ptx) if names else ptx


def joined(texts):
    first, shared = texts[0], set(SHARED.findall(texts[0]))
    for text in texts[1:]:
        text = HEADER.sub("", text)
        for line in SHARED.findall(text):
            if line in shared:
                text = text.replace(line, "")
            shared.add(line)
        first += text
    return first


def parameters(ptx, entry):
    """How many parameters the entry declares."""
    found = re.search(r"\.entry\s+" + re.escape(entry) + r"\s*\((.*?)\)", ptx, re.S)
    return len(re.findall(r"\.param\b", found.group(1))) if found else 0


# ---- what was decided, for the plan ---------------------------------------------------------------

SWIZZLES = (0, 32, 64, 128)


class Completion:
    def __init__(self):
        self.launches, self.maps, self.buffers = [], [], []

    def descriptor(self, arg, meta):
        """A descriptor is passed with its sizes and strides, outermost first."""
        rank, name = len(arg["box"]), arg["map"]
        if meta is None:
            raise SystemExit("this architecture has no tensor descriptors in hardware")
        get = meta.get if isinstance(meta, dict) else lambda key: getattr(meta, key)
        self.maps.append({"map": name, "box": [int(b) for b in get("block_size")][::-1],
                          "swizzle": SWIZZLES[get("swizzle")], "l2": 128})
        order = range(rank - 1, -1, -1)
        return ([{"tensormap": len(self.maps) - 1}] + [{"i32": f"{name}_dim{d}"} for d in order] +
                [{"i64": f"{name}_stride{d}"} for d in order])

    def scratch(self, of, which, decided, ctas):
        size = decided.get(f"{which}_scratch_size") or 0
        if not size:
            return {"i64": 0}
        name = f"{which}_scratch_{of}"
        self.buffers.append({"name": name, "of": of, "bytes": f"grid_x * grid_y * grid_z * {size * ctas}"})
        return {"buffer": name}

    def add(self, of, launch, decided, ptx):
        ctas, metas, args = decided.get("num_ctas", 1), list(decided.get("tensordesc_meta") or []), []
        for index, arg in launch.passed:
            args += self.descriptor(arg, metas.pop(0) if metas else None) if "map" in arg else [{"arg": index}]
        hidden = parameters(ptx, decided["name"]) - len(args)
        if not 0 <= hidden <= 2:
            raise SystemExit(f"{decided['name']} takes {hidden + len(args)} parameters, {len(args)} are passed")
        args += [self.scratch(of, which, decided, ctas) for which in ("global", "profile")[:hidden]]
        self.launches.append({
            "of": of, "entry": decided["name"], "grid": [f"grid_x * {ctas}", "grid_y", "grid_z"],
            "block": [32 * decided["num_warps"], 1, 1], "cluster": [ctas, 1, 1],
            "smem": decided["shared"], "args": args})

    def text(self):
        return json.dumps({"version": 1, "buffers": self.buffers, "tensormaps": self.maps,
                           "launches": self.launches}, indent=1)


def compile_all(job, text):
    source, completion, texts = Source(text), Completion(), []
    arch = number_of(job["arch"])
    given = {k: int(v) for k, v in re.findall(r"-DKL_(\w+)=(-?\d+)", " ".join(job["defines"]))}
    for of, spec in enumerate(job["launches"]):
        launch = Launch(source, spec, given)
        ptx, decided = to_ptx(launch, arch)
        completion.add(of, launch, decided, ptx)
        if of:
            ptx = renamed(ptx, f"__{of}")
            completion.launches[-1]["entry"] += f"__{of}"
        texts.append(ptx)
    for line, why in source.dropped:
        print(f"{FILE}:{line}: note: left out: {why}", file=sys.stderr)
    return joined(texts), completion.text()


def chain_of(error):
    """Triton wraps an error of a callee in one of its caller; the last is the first that happened."""
    chain = [error]
    while getattr(chain[-1], "__cause__", None) is not None:
        chain.append(chain[-1].__cause__)
    return chain


def place_of(error, text):
    """Line and column in the file; Triton counts lines from the function's own first."""
    if isinstance(error, Refused):
        return error.line, error.column
    if isinstance(error, SyntaxError):
        return error.lineno or 1, error.offset or 1
    node, source = getattr(error, "node", None), getattr(error, "src", None)
    if not getattr(node, "lineno", None) or not source:
        return None
    before = text.find(source.strip())
    if before < 0:
        return None    # a function of Triton's own library
    return node.lineno + text.count("\n", 0, before), node.col_offset + 1


def refuse(error, text):
    chain = chain_of(error)
    line, column = next((p for p in (place_of(e, text) for e in reversed(chain)) if p), (1, 1))
    cause = chain[-1]
    said = getattr(cause, "error_message", None) or getattr(cause, "msg", None) or str(cause)
    said = said.strip() or f"Triton's compiler ended with {type(cause).__name__} and no message"
    raise SystemExit(f"{FILE}:{line}:{column}: error: {said}")


def number_of(arch):
    return int(re.match(r"sm_(\d+)", arch).group(1))


def answer(request):
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"    # a path in the code would be part of its hash
    watch_unrolling()
    try:
        ptx, completion = compile_all(request, request["text"])
    except Exception as error:    # whatever the text made Triton do is an answer about the text
        refuse(error, request["text"])
    return {"kernel.ptx": ptx, "completion": completion, "assembler": assembler(number_of(request["arch"]))}


# ---- ahead of any request -------------------------------------------------------------------------

PLAIN = """import triton
import triton.language as tl

@triton.jit
def plain(x, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(x + i, tl.exp(v - tl.max(v, 0)) / tl.sum(v, 0), mask=i < n)
"""
PLAIN_LAUNCH = {"entry": "plain", "warps": 4, "stages": 3, "ctas": 1, "maxnreg": 0, "args": [
    {"type": "float32"}, {"integer": "i32", "by": 16}, {"name": "B", "integer": "i32", "by": 16, "value": 256}]}


def warm_up():
    """What Triton and LLVM make on first use is made once, for all that are forked off."""
    to_ptx(Launch(Source(PLAIN), PLAIN_LAUNCH, {}), 90)
