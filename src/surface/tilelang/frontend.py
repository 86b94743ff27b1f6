"""frontend.py - a candidate's Python text to CUDA C++, and to what TileLang decided of each launch.

A script of src/backend/compile_server.py: asked for {arch, defines, flags, launches, text}, it answers
with {lowered.cu, completion (docs/formats/completion.md)}.  Runs confined, without torch, driver or
GPU.  A refusal is a line `kernel.py:LINE:COLUMN: error: ...` on stderr.

TileLang traces a kernel by running the function that builds it, so a candidate's Python does run here:
the functions that a launch reaches, and constants.  Statements, names and attributes are held against
lists first.  The jail is what holds; the lists keep the meaning of "lowered from this text", and what
leaves is text that another process reads again (compile.c) before our own compiler sees it.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import builtins
import json
import linecache
import logging
import math
import os
import re
import signal
import sys
import types

FILE = "kernel.py"


class Refused(Exception):
    """Text with its place."""

    def __init__(self, node, text):
        super().__init__(text)
        self.line, self.column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1


# ---- TileLang without torch ----------------------------------------------------------------------

DTYPES = """float32 float16 bfloat16 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool
    float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 float half
    double int long short complex64 complex128""".split()


class Anything(type):
    """A class of which everything is asked in vain; what TileLang's run-time half does with it is never reached."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing


class Nothing(metaclass=Anything):
    def __init__(self, *args, **named):
        pass

    def __call__(self, *args, **named):
        return self


def stand_in_for_torch():
    """TileLang imports torch for tensors and streams, which lowering has none of."""
    torch = types.ModuleType("torch")
    absent = type("absent", (), {"is_available": staticmethod(lambda: False), "device_count": staticmethod(lambda: 0)})
    for name in DTYPES:
        setattr(torch, name, type("dtype", (), {"__repr__": lambda self, name=name: "torch." + name})())
    torch.__version__, torch.Tensor = "2.11.0", type("Tensor", (), {})
    torch.version = type("version", (), {"hip": None, "cuda": None})
    torch.cuda = torch.npu = torch.mlu = absent
    torch.backends = type("backends", (), {"mps": absent, "mkl": type("mkl", (), {})})
    torch.__getattr__ = lambda name: getattr(Nothing, name)
    parts = "utils utils.cpp_extension utils._python_dispatch utils.dlpack distributed nn nn.functional library".split()
    for part in parts:
        sys.modules["torch." + part] = types.ModuleType("torch." + part)
        sys.modules["torch." + part].__getattr__ = lambda name: getattr(Nothing, name)
    sys.modules["torch"], sys.modules["torch.cuda"] = torch, absent


# ---- what a file may name ------------------------------------------------------------------------

# Of tilelang.language; text of other languages, raw addresses, launches that the runner cannot make and
# instructions by name are not here.
LANGUAGE = set("""
    Kernel ClusterKernel Pipelined Persistent Parallel Serial serial Unroll unroll Vectorized vectorized grid
    prim_func macro Tensor StridedTensor SharedBuffer FragmentBuffer LocalBuffer dynamic symbolic const
    alloc_shared alloc_fragment alloc_local alloc_var alloc_barrier alloc_cluster_barrier alloc_reducer
    reducer_init reducer_update finalize_reducer
    copy async_copy tma_copy gemm wgmma_gemm wait_wgmma gemm_sp GemmWarpPolicy fill clear transpose reshape view
    reduce reduce_sum reduce_max reduce_min reduce_abssum reduce_absmax reduce_bitand reduce_bitor reduce_bitxor
    cumsum cummax warp_reduce_max warp_reduce_min warp_reduce_sum warp_reduce_bitand warp_reduce_bitor
    atomic_add atomic_addx2 atomic_addx4 atomic_max atomic_min atomic_or atomic_load atomic_store
    use_swizzle annotate_layout annotate_safe_value annotate_min_blocks_per_sm annotate_producer_reg_dealloc
    annotate_consumer_reg_alloc annotate_restrict_buffers no_set_max_nreg disable_warp_group_reg_alloc
    set_max_nreg inc_max_nreg dec_max_nreg Layout Fragment
    make_mma_swizzle_layout get_swizzle_layout assume likely print loop_break break_loop continue_loop
    thread_return ws sync_threads sync_warp syncthreads_and syncthreads_or syncthreads_count cluster_sync
    cluster_arrive cluster_wait block_rank_in_cluster copy_cluster barrier_arrive barrier_wait mbarrier_arrive
    mbarrier_wait_parity mbarrier_expect_tx mbarrier_arrive_expect_tx create_barriers fence_proxy_async
    tma_store_arrive tma_store_wait ptx_commit_group ptx_wait_group warpgroup_arrive warpgroup_commit_batch
    warpgroup_wait shfl_sync shfl_down shfl_up shfl_xor any_sync all_sync ballot ballot_sync activemask
    match_any_sync match_all_sync shuffle_elect get_thread_binding get_thread_bindings get_block_binding
    get_block_bindings get_thread_extent get_thread_extents get_block_extent get_block_extents get_lane_idx
    get_warp_idx get_warp_idx_sync get_warp_group_idx get_cluster_id get_cluster_ids
    ceildiv cdiv floordiv floormod truncdiv truncmod align_up min max clamp abs fabs exp exp2 exp10 log log2
    log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan atan2 asinh acosh atanh erf pow fmod hypot
    sigmoid floor ceil round trunc nearbyint copysign ldexp nextafter fma fmul fast_rcp isnan isinf isfinite
    ieee_add ieee_sub ieee_mul ieee_fmaf ieee_fdiv ieee_frcp ieee_fsqrt ieee_frsqrt add2 sub2 mul2 fma2 max2 min2
    abs2 dp4a popcount clz bitwise_and bitwise_or bitwise_xor bitwise_not shift_left shift_right if_then_else
    where Select Cast cast reinterpret infinity max_value min_value any_of all_of cdiv access_ptr address_of
    ldg32 ldg64 ldg128 ldg256 stg32 stg64 stg128 stg256 lds32 lds64 lds128 sts32 sts64 sts128
    float float16 float32 float64 half double bfloat16 tfloat32 int int8 int16 int32 int64 short long uint uint8
    uint16 uint32 uint64 bool boolean float8_e4m3 float8_e4m3fn float8_e5m2 dtype""".split())
LAYOUTS = set("""Layout Fragment SwizzleMode make_swizzled_layout make_wgmma_swizzled_layout make_linear_layout
    make_full_bank_swizzled_layout make_half_bank_swizzled_layout make_quarter_bank_swizzled_layout""".split())
MODULES = {
    "tilelang": {"language", "layout", "cdiv", "next_power_of_2"},
    "tilelang.language": LANGUAGE,
    "tilelang.layout": LAYOUTS,
    "math": {name for name in dir(math) if not name.startswith("_")},
}
BUILTINS = set("range min max len int float bool abs tuple list dict sum zip enumerate reversed sorted any all".split())
# Methods and fields of the values that a builder computes with.
ATTRIBUTES = set("shape dtype ndim bits astype append items keys values index FullRow FullCol Square".split())
STATEMENTS = (ast.FunctionDef, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.While, ast.If,
              ast.With, ast.Expr, ast.Pass, ast.Assert, ast.Break, ast.Continue)
NOT_VALUES = (ast.Await, ast.Yield, ast.YieldFrom)
MOST_CONSTANTS = 4096    # of a file: literals and, in lists, what they are repeated to; a table of answers is no kernel
TRACED = {("prim_func",), ("macro",)}


def dotted(node):
    """`a.b.c` as ("a", ["b", "c"]); the root is None where it is no name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else None), parts[::-1]


def check_chain(node, module, parts):
    """Every step from a module on is one that it is listed with."""
    for part in parts:
        if not isinstance(module, types.ModuleType):
            if part not in ATTRIBUTES:
                raise Refused(node, f"'.{part}' is no attribute of a value of TileLang's")
            return
        name = module.__name__
        if name in ("tilelang.cuda.language", "tilelang.language"):
            name = "tilelang.language"
        if name not in MODULES or part not in MODULES[name]:
            raise Refused(node, f"'{part}' of {name} is not for kernels")
        module = getattr(module, part, None)


# ---- a file: names that its functions see, and what was left out -----------------------------------

class Source:
    def __init__(self, text):
        self.tree = ast.parse(text, FILE)
        linecache.cache[FILE] = (len(text), None, text.splitlines(True), FILE)
        self.values = {"__builtins__": {name: getattr(builtins, name) for name in BUILTINS}, "__name__": "kernel"}
        self.modules, self.functions, self.dropped, self.reached = {}, {}, [], set()
        for node in self.tree.body:
            self.read(node)

    def drop(self, node, why):
        self.dropped.append((node.lineno, why))

    def read(self, node):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self.read_import(node)
        elif isinstance(node, ast.FunctionDef):
            self.functions[node.name] = node
        elif isinstance(node, ast.Assign) and self.names_of(node):
            self.read_constant(node)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            self.drop(node, "no function, constant or import of tilelang")

    def read_import(self, node):
        for alias in node.names:
            path = getattr(node, "module", None)
            full = alias.name if path is None else f"{path}.{alias.name}"
            if getattr(node, "level", 0) or not self.bind(full, path, alias):
                self.drop(node, f"import of {full}")

    def bind(self, full, path, alias):
        if full in MODULES:
            module = sys.modules[full]
            name = alias.asname or (full.split(".")[0] if path is None else alias.name)
            bound = module if alias.asname or path else sys.modules[full.split(".")[0]]
            self.modules[name] = self.values[name] = bound
            return True
        if path in MODULES and alias.name in MODULES[path]:
            self.values[alias.asname or alias.name] = getattr(sys.modules[path], alias.name)
            return True
        return False

    def names_of(self, node):
        """What an assignment of `a = ...` or `a, b = ...` binds; nothing for any other."""
        targets = [t for one in node.targets for t in (one.elts if isinstance(one, ast.Tuple) else [one])]
        return targets if all(isinstance(t, ast.Name) for t in targets) else []

    def read_constant(self, node):
        try:
            self.check(node.value, set())
        except Refused as refused:
            return self.drop(node, f"no constant: {refused}")
        for target in self.names_of(node):
            self.check_name(target, target.id)
        exec(compile(ast.Module(body=[node], type_ignores=[]), FILE, "exec"), self.values)

    # ---- what a function may say

    def check_name(self, node, name):
        if name.startswith("__"):
            raise Refused(node, f"'{name}' is private")

    def check_call(self, node):
        for keyword in node.keywords:
            if keyword.arg is None:
                raise Refused(node, "arguments of a call are named one by one")
            if keyword.arg in ("prelude", "is_cpu"):
                raise Refused(node, f"'{keyword.arg}' brings in text of another language")

    def check_attribute(self, node, bound):
        root, parts = dotted(node)
        if any(part.startswith("_") for part in parts):
            raise Refused(node, f"'.{node.attr}' is private")
        if not isinstance(node.ctx, ast.Load):
            raise Refused(node, "an attribute is never set")
        if root in self.modules and root not in bound:
            check_chain(node, self.modules[root], parts)
        elif node.attr not in ATTRIBUTES:
            raise Refused(node, f"'.{node.attr}' is no attribute of a value of TileLang's")

    def check_nested(self, node):
        """A function inside a builder: traced, or a plain one."""
        for decorator in node.decorator_list:
            root, parts = dotted(decorator)
            target = tuple(parts) if root in self.modules else (root,)
            if target not in TRACED:
                raise Refused(decorator, "a decorator is T.prim_func or T.macro, without arguments")

    def check_one(self, node, bound):
        if isinstance(node, ast.stmt) and not isinstance(node, STATEMENTS) or isinstance(node, NOT_VALUES):
            raise Refused(node, f"{type(node).__name__.lower()} has no place in a kernel")
        if isinstance(node, ast.Name):
            self.check_name(node, node.id)
            known = node.id in bound or node.id in self.values or node.id in self.functions or node.id in BUILTINS
            if isinstance(node.ctx, ast.Load) and not known:
                raise Refused(node, f"'{node.id}' is no parameter, local, constant, function or name of TileLang")
        elif isinstance(node, ast.arg):
            self.check_name(node, node.arg)
        elif isinstance(node, ast.Call):
            self.check_call(node)
        elif isinstance(node, ast.Attribute):
            self.check_attribute(node, bound)
        elif isinstance(node, ast.FunctionDef):
            self.check_name(node, node.name)
            self.check_nested(node)

    def check(self, tree, bound):
        for node in ast.walk(tree):
            self.check_one(node, bound)

    # ---- from a launch on

    def bound_in(self, function):
        names = {a.arg for node in ast.walk(function) if isinstance(node, ast.arguments)
                 for a in node.posonlyargs + node.args + node.kwonlyargs + [v for v in (node.vararg, node.kwarg) if v]}
        names |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return names | {n.name for n in ast.walk(function) if isinstance(n, ast.FunctionDef)}

    def reach(self, name):
        """Check and define a function of the file, after those that it names."""
        if name in self.reached:
            return
        self.reached.add(name)
        function = self.functions[name]
        traced = []
        for decorator in function.decorator_list:
            root, parts = dotted(decorator)
            keep = (tuple(parts) if root in self.modules else (root,)) in TRACED
            traced += [decorator] if keep else []
            if not keep:
                self.drop(decorator, f"decorator {ast.unparse(decorator)[:60]}")
        function.decorator_list, function.returns = traced, None
        for argument in function.args.posonlyargs + function.args.args + function.args.kwonlyargs:
            if not traced:
                argument.annotation = None
        bound = self.bound_in(function)
        self.check(function, bound)
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in self.functions and node.id not in bound:
                self.reach(node.id)
        exec(compile(ast.Module(body=[function], type_ignores=[]), FILE, "exec"), self.values)

    def check_size(self):
        literals = sum(isinstance(n, ast.Constant) for name in self.reached for n in ast.walk(self.functions[name]))
        literals += sum(isinstance(n, ast.Constant) for node in self.tree.body if isinstance(node, ast.Assign)
                        for n in ast.walk(node))
        if literals > MOST_CONSTANTS:
            raise Refused(None, f"{literals} literals; more than {MOST_CONSTANTS} are a table of answers")


# ---- bounds on what a builder does -----------------------------------------------------------------

MOST_SECONDS = 20    # of processor time; the largest kernels known are built and lowered in less than five


class Bound(Exception):
    pass


def watch_time():
    """What never returns to Python ends by the jail's own limit, with fewer words."""
    def stop(number, frame):
        raise Bound(f"not built and lowered after {MOST_SECONDS} s of processor time")
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)


# ---- one launch: its builder called ----------------------------------------------------------------

def text_value(node, text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise Refused(node, f"'{text}' cannot be read") from None


class Launch:
    """A prim_func, with what each of its parameters is filled by."""

    def __init__(self, source, spec, given):
        import tilelang.language as T
        self.entry = spec["entry"]
        if self.entry not in source.functions:
            names = " ".join(source.functions) or "none"
            raise Refused(None, f"there is no function '{self.entry}'; there are: {names}")
        source.reach(self.entry)
        source.check_size()
        self.node, self.T = source.functions[self.entry], T
        self.plain = [(i, a) for i, a in enumerate(spec["args"]) if "name" not in a]
        named = {a["name"]: a for a in spec["args"] if "name" in a}
        made = source.values[self.entry]
        self.function = made if is_traced(made) else made(**self.values(named, given))
        if is_traced(made) and named:
            raise Refused(self.node, "a T.prim_func of the file takes no values by name")
        if not is_traced(self.function):
            raise Refused(self.node, f"'{self.entry}' returns no T.prim_func")
        self.fit()

    def values(self, named, given):
        """What the builder is called with: by name, else a param or constant axis of that name, else its default."""
        arguments, values = self.node.args, {}
        plain = arguments.posonlyargs + arguments.args
        optional = {a.arg for a in plain[len(plain) - len(arguments.defaults):]}
        optional |= {a.arg for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults) if d}
        for a in plain + arguments.kwonlyargs:
            if a.arg in named:
                values[a.arg] = self.value(a, named.pop(a.arg))
            elif a.arg in given:
                values[a.arg] = given[a.arg]
            elif a.arg not in optional:
                raise Refused(a, f"'{a.arg}' has no value: write {a.arg}=... in args(...)")
        if named:
            raise Refused(self.node, f"'{self.entry}' has no parameter '{next(iter(named))}'")
        return values

    def value(self, node, arg):
        if "word" in arg:
            return text_value(node, arg["word"])
        if "dtype" in arg:
            return getattr(self.T, arg["dtype"])
        if "value" not in arg:
            raise Refused(node, f"'{node.arg}' is a value of the builder, which no tensor or real input can be")
        return arg["value"]

    def fit(self):
        """Tensors and scalars, in the prim_func's order."""
        parameters = list(self.function.params)
        if len(parameters) != len(self.plain):
            raise Refused(self.node, f"{len(self.plain)} arguments without a name, but the T.prim_func takes {len(parameters)}")
        self.memory, self.scalars = {}, {}
        for p, (index, arg) in zip(parameters, self.plain):
            buffer = self.function.buffer_map[p] if p in self.function.buffer_map else None
            wanted = str(buffer.dtype if buffer is not None else p.dtype)
            has = arg.get("type") or {"i32": "int32", "i64": "int64"}.get(arg.get("integer")) or arg.get("real")
            name = buffer.name if buffer is not None else p.name
            if ("type" in arg) != (buffer is not None) or has != wanted:
                raise Refused(self.node, f"'{name}' is {'a tensor of ' if buffer is not None else ''}{wanted}; argument "
                                         f"{index + 1} is {'a tensor of ' if 'type' in arg else ''}{has or 'no number'}")
            if buffer is not None:
                self.memory[str(buffer.data.name)] = index
            else:
                self.scalars[str(p.name)] = index


def is_traced(value):
    from tilelang import tvm
    return isinstance(value, tvm.tirx.PrimFunc)


# ---- lowering ----------------------------------------------------------------------------------------

def pass_configs(flags):
    """Words of the `flags` line, which the surface allows: -KEY or -KEY=NUMBER."""
    given = {}
    for flag in flags:
        key, _, value = flag[1:].partition("=")
        given[key] = int(value) if value else True
    return given


def lower(launch, arch, configs, of):
    import tilelang
    from tilelang import tvm
    name = launch.entry + (f"__{of}" if of else "")
    function = launch.function.with_attr("global_symbol", name)
    target = tvm.target.Target({"kind": "cuda", "arch": arch})
    with target, tvm.transform.PassContext(opt_level=3, config=configs):
        return tilelang.lower(function, target=target)


def expression(node, value):
    """An integer of the lowered code, as an integer or as an expression over axes."""
    from tilelang import tvm
    tir = tvm.tirx
    if isinstance(value, int):
        return value
    if isinstance(value, tir.IntImm):
        return int(value.value)
    if isinstance(value, tir.Var):
        return str(value.name)
    if isinstance(value, tir.Cast):
        return expression(node, value.value)
    signs = {tir.Add: "+", tir.Sub: "-", tir.Mul: "*", tir.FloorDiv: "/", tir.Div: "/", tir.FloorMod: "%", tir.Mod: "%"}
    if type(value) in signs:
        return f"({expression(node, value.a)} {signs[type(value)]} {expression(node, value.b)})"
    if type(value) in (tir.Min, tir.Max):
        return f"{type(value).__name__.lower()}({expression(node, value.a)}, {expression(node, value.b)})"
    raise Refused(node, f"a size of the launch is no expression over axes: {value}")


SWIZZLES, PROMOTIONS = (0, 32, 64, 128), (0, 64, 128, 256)
# CUtensorMapDataType by element type.
DRIVER_TYPES = {"uint8": 0, "int8": 0, "bool": 0, "float8_e4m3fn": 0, "float8_e5m2": 0, "int32": 3, "int64": 5,
                "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9}


class Lowered:
    """What the lowered host function says of its launches."""

    def __init__(self, launch, artefact, of, completion):
        self.launch, self.of, self.completion = launch, of, completion
        self.device = {g.name_hint: f for g, f in artefact.device_mod.functions.items()}
        (self.host,) = artefact.host_mod.functions.values()
        self.maps = {str(k.name): list(v) for k, v in (self.host.attrs.get("tma_descriptor_args") or {}).items()}
        for call in self.calls():
            self.add(call)

    def refuse(self, text):
        raise Refused(self.launch.node, text)

    def calls(self):
        """The launches in their order; nothing else may happen on the host."""
        from tilelang import tvm
        nodes = []
        tvm.tirx.stmt_functor.post_order_visit(self.host.body, nodes.append)
        if any(isinstance(node, (tvm.tirx.For, tvm.tirx.While)) for node in nodes):
            self.refuse("a loop around launches; write a launch line for each")
        found = [node for node in nodes if isinstance(node, tvm.tirx.Call) and len(node.args)
                 and isinstance(node.args[0], tvm.tirx.StringImm) and str(node.args[0].value) in self.device]
        if sorted(str(c.args[0].value) for c in found) != sorted(self.device):
            self.refuse("a kernel of it is launched other than once")
        return found

    def add(self, call):
        name = str(call.args[0].value)
        function = self.device[name]
        for attribute, what in (("use_cooperative_groups", "T.sync_grid"), ("has_cuda_pdl_sync", "T.pdl_sync")):
            if function.attrs.get(attribute):
                self.refuse(f"{what} needs a launch that the runner does not make")
        extent = {str(k): v for k, v in function.attrs["thread_extent"].items()}
        sizes = {axis: [expression(self.launch.node, extent.get(f"{axis}.{d}", 1)) for d in "xyz"]
                 for axis in ("blockIdx", "threadIdx")}
        cluster = [int(c) for c in function.attrs.get("cluster_dims") or (1, 1, 1)]
        parameters = list(function.params)
        for p in parameters:    # a T.dynamic of any text is written into the lowered code as it is
            if not str(p.name).isidentifier():
                self.refuse(f"'{p.name}' is no name of an axis")
        self.completion["launches"].append({
            "of": self.of, "entry": name, "grid": sizes["blockIdx"], "block": sizes["threadIdx"], "cluster": cluster,
            "smem": expression(self.launch.node, function.attrs.get("dyn_shared_memory_buf", 0)),
            "args": [self.argument(p, a) for p, a in zip(parameters, call.args[1:])]})

    def argument(self, parameter, value):
        name = str(getattr(value, "name", ""))
        if name in self.maps and "handle" not in str(value.dtype):
            self.refuse(f"'{name}' is a descriptor and a number")
        if name in self.maps:
            return self.descriptor(name)
        if name in self.launch.memory:
            return {"arg": self.launch.memory[name]}
        if name in self.launch.scalars:
            return {"arg": self.launch.scalars[name]}
        kind = {"int32": "i32", "int64": "i64"}.get(str(parameter.dtype))
        if not kind:
            self.refuse(f"'{name or value}' is memory that no argument brings; declare it with a buffer line")
        return {kind: expression(self.launch.node, value)}

    def descriptor(self, name):
        call, _, driver_type, rank, data, *rest = self.maps[name]
        if "tiled" not in str(getattr(call, "value", call)):
            self.refuse(f"'{name}' is a descriptor of image patches (im2col), which the runner does not make")
        if str(data.name) not in self.launch.memory:
            self.refuse(f"'{name}' describes memory that no argument brings")
        rank, number = int(rank), lambda v: expression(self.launch.node, v)
        index = self.launch.memory[str(data.name)]
        wanted = DRIVER_TYPES.get(dict(self.launch.plain)[index]["type"])
        if int(driver_type) != wanted:
            self.refuse(f"'{name}' describes elements as {int(driver_type)}, their type is {wanted}")
        dims, strides, box, steps = ([number(v) for v in rest[i * rank:(i + 1) * rank]] for i in range(4))
        interleave, swizzle, l2, fill = (int(v) for v in rest[4 * rank:])
        if any(s != 1 for s in steps) or interleave or fill:
            self.refuse(f"'{name}' is a descriptor with steps, interleave or NaN outside, which the runner does not make")
        self.completion["tensormaps"].append({"arg": index, "of": self.of, "dims": dims, "strides": strides[1:], "box": box,
                                              "swizzle": SWIZZLES[swizzle], "l2": PROMOTIONS[l2]})
        return {"tensormap": len(self.completion["tensormaps"]) - 1}


def compile_all(job, text):
    source, texts = Source(text), []
    given = {k: int(v) for k, v in re.findall(r"-DKL_(\w+)=(-?\d+)", " ".join(job["defines"]))}
    completion = {"version": 1, "tensormaps": [], "launches": []}
    configs = pass_configs(job["flags"])
    for of, spec in enumerate(job["launches"]):
        launch = Launch(source, spec, given)
        try:
            artefact = lower(launch, job["arch"], configs, of)
        except Exception as error:
            raise Refused(node_of(error, launch.node), said_by(error)) from error
        Lowered(launch, artefact, of, completion)
        texts.append(artefact.kernel_source)
    for name in source.functions:
        if name not in source.reached:
            source.drop(source.functions[name], f"function {name}, which no launch reaches")
    for line, why in sorted(source.dropped):
        print(f"{FILE}:{line}: note: left out: {why}", file=sys.stderr)
    return "\n".join(texts), json.dumps(completion, indent=1)


# ---- errors ------------------------------------------------------------------------------------------

SHOWN = re.compile(r"^\s*--> \S*" + re.escape(FILE) + r":(\d+).*\Z", re.M | re.S)    # TileLang's own picture of the place
NOISE = re.compile(r"^(Traceback|File |  |\[?\d\d:\d\d|Stack trace|\d+: )")


def said_by(error):
    """The last line of substance: TileLang's errors bring a C++ trace and listings of its code along."""
    lines = [line.strip() for line in SHOWN.sub("", str(error)).splitlines() if line.strip() and not NOISE.match(line)]
    said = lines[-1] if lines else ""
    return re.sub(r"^(\w+Error|InternalError): ", "", said)[:400] or f"TileLang's compiler ended with {type(error).__name__} and no message"


def node_of(error, function):
    """Where TileLang shows it, else the function; its frames are not the file's."""
    shown = SHOWN.search(str(error))
    return types.SimpleNamespace(lineno=int(shown.group(1)), col_offset=0) if shown else function


def place_of(error):
    """Line and column in the file: of a refusal, or of the innermost frame that lies in the file."""
    if isinstance(error, Refused):
        return error.line, error.column
    if isinstance(error, SyntaxError):
        return error.lineno or 1, error.offset or 1
    line, trace = None, error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename.endswith(FILE):
            line = trace.tb_lineno
        trace = trace.tb_next
    return (line or 1), 1


def refuse(error):
    line, column = place_of(error)
    said = str(error) if isinstance(error, Refused) else getattr(error, "msg", None) or said_by(error)
    raise SystemExit(f"{FILE}:{line}:{column}: error: {said}")


def answer(request):
    watch_time()
    try:
        lowered, completion = compile_all(request, request["text"])
    except Exception as error:    # whatever the text made TileLang do is an answer about the text
        refuse(error)
    return {"lowered.cu": lowered, "completion": completion}


def load():
    logging.disable(logging.CRITICAL)
    stand_in_for_torch()
    made, os.makedirs = os.makedirs, lambda *_, **named: None    # of caches, at import; its JIT alone uses them
    import tilelang    # noqa: F401
    import tilelang.language
    import tilelang.layout    # noqa: F401
    os.makedirs = made


load()    # with the script: a warm process has it
