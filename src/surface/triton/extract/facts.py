"""facts.py - what is known of packages without reading them: Python's own, torch, Triton; and of FlagGems, which
keeps its configurations in tables.

Each of the first gets a dotted name, and the arguments where it is called; it answers with a tuple of one value, or
None where it knows nothing.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import builtins
import importlib.metadata
import itertools
import math
import operator
import os
import re
import sys

from values import (
    Config, Descriptor, Method, Outside, Partial, Real, Scope, Sym, Tensor, Unknown, dtype_name, factors_of, fold, is_integer, known,
    product, real, two)


def torch_facts(e, name, values, named):
    called = values is not None
    properties = {"multi_processor_count": Sym("sms"), "major": e.arch // 10, "minor": e.arch % 10,
                  "shared_memory_per_block_optin": SHARED_BYTES.get(e.arch, Unknown())}
    if name == "torch.version.hip":
        return (None,)
    if not called and name.startswith("torch.cuda.properties."):
        return (properties.get(name.split(".")[-1], Unknown()),)
    if called and name == "torch.cuda.get_device_properties":
        return (Outside("torch.cuda.properties"),)
    if called and name in ("torch.finfo", "torch.iinfo") and dtype_name(values[0]):
        return (Outside(f"torch.limits.{dtype_name(values[0])}"),)
    if not called and name.startswith("torch.limits."):
        return (limit_of(*name.split(".")[2:4]),)
    if not called or not name.startswith("torch."):
        return None
    plain = {"torch.cuda.is_available": True, "torch.cuda.current_device": 0, "torch.cuda.device_count": 1,
             "torch.cuda.get_device_capability": (e.arch // 10, e.arch % 10)}
    if name in plain:
        return (plain[name],)
    what = name.split(".")[1]
    if what in ("empty", "zeros", "ones", "full"):
        shape = values[0] if values and isinstance(values[0], (list, tuple)) else [v for v in values if is_integer(v)]
        shape = named.get("size", shape)
        return (Tensor(None, shape, dtype_name(named.get("dtype")) or "float32", zero=what == "zeros"),)
    if what in ("empty_like", "zeros_like", "ones_like", "full_like") and values and isinstance(values[0], Tensor):
        like = values[0]
        return (Tensor(None, like.shape, dtype_name(named.get("dtype")) or like.dtype, zero=what == "zeros_like"),)
    if what in ("is_tensor",) and values:
        return (isinstance(values[0], Tensor),) if not isinstance(values[0], Unknown) else None
    if what == "promote_types" and len(values) == 2 and values[0] == values[1]:
        return (values[0],)
    return None


def limit_of(dtype, which):
    """Largest and smallest value of a data type."""
    bits = int(re.sub(r"\D", "", dtype) or 0)
    if re.fullmatch(r"u?int\d+", dtype) and which in ("max", "min"):
        low = 0 if dtype[0] == "u" else -1 << (bits - 1)
        return low if which == "min" else (1 << bits) - 1 + low
    most = {"float64": sys.float_info.max, "float32": 3.4028234663852886e38, "bfloat16": 3.3895313892515355e38,
            "float16": 65504.0}.get(dtype)
    return {"max": most, "min": -most}.get(which, Unknown()) if most else Unknown()


DEFAULTS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}    # of triton.Config and of a launch
TARGET = "triton.runtime.driver.active.target"
SHARED_BYTES = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}    # a block may ask for


def triton_facts(e, name, values, named):
    plain = {"triton.__version__": triton_version, f"{TARGET}.backend": lambda: "cuda", f"{TARGET}.arch": lambda: e.arch}
    if values is None and name in plain:
        return (plain[name](),)
    if name == "triton.runtime.driver.active.get_current_target":
        return (Outside(TARGET),) if values is not None else None
    if name == "triton.runtime.driver.active.utils.get_device_properties" and values is not None:
        return ({"max_shared_mem": SHARED_BYTES.get(e.arch, Unknown()), "multiprocessor_count": Sym("sms"), "warpSize": 32},)
    if values is None or not name.startswith("triton."):
        return None
    what = name.split(".")[-1]
    if what == "Config":
        config = Config(values[0] if values and isinstance(values[0], dict) else named.get("kwargs") or {})
        options = ("num_warps", "num_stages", "num_ctas", "maxnreg")
        config.options = {**DEFAULTS, **{k: named[k] for k in options if named.get(k) is not None}}
        config.pre_hook = named.get("pre_hook")
        for key, value in zip(("num_warps", "num_stages", "num_ctas"), values[1:]):
            config.options[key] = value
        return (config,)
    if name.startswith("triton.tools.tensor_descriptor.TensorDescriptor"):
        return (descriptor_of(what, [*values, *named.values()]),)
    if what == "constexpr" and len(values) == 1:
        return (values[0],)
    if what == "cdiv" and len(values) == 2 and all(map(is_integer, values)):
        return (two("cdiv", lambda a, b: -(-a // b), *values),)
    if what == "next_power_of_2" and len(values) == 1 and is_integer(values[0]):
        v = values[0]
        return (Sym(f"pow2({v.text})") if isinstance(v, Sym) else 1 << max(v - 1, 0).bit_length(),)
    return None


def descriptor_of(what, values):
    """TensorDescriptor(tensor, shape, strides, block), or .from_tensor(tensor, block)."""
    if not values or not isinstance(values[0], Tensor):
        return Unknown("a descriptor of no tensor that is known")
    if what == "from_tensor" and len(values) == 2:
        return Descriptor(values[0], values[0].shape, values[0].strides, values[1])
    plain = len(values) >= 4 and all(isinstance(v, (list, tuple)) for v in values[1:4])
    return Descriptor(*values[:4]) if plain else Unknown("a descriptor whose shape is not known")


def triton_version():
    try:
        return importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return "3.6.0"


MATH = {"sqrt", "ceil", "floor", "log", "log2", "log10", "exp", "exp2", "gcd", "pow", "fabs", "isqrt"}


def python_facts(e, name, values, named):
    if values is None:
        return None
    package, _, what = name.rpartition(".")
    if name in ("os.environ.get", "os.getenv") and values:
        return (values[1] if len(values) > 1 else named.get("default"),)
    if package == "operator" and what in ("lt", "le", "eq", "ne", "ge", "gt") and len(values) == 2:
        ok = all(isinstance(v, (int, float, tuple, str)) for v in values)
        return (getattr(operator, what)(*values),) if ok else (Unknown(),)
    if name in ("packaging.version.Version", "packaging.version.parse", "version.parse") and values and isinstance(values[0], str):
        return (tuple(int(n) for n in re.findall(r"\d+", values[0].split("+")[0])[:3]),)
    if name == "importlib.import_module" and values and isinstance(values[0], str):
        return (e.imported(values[0]),)
    if name == "functools.partial" and values:
        return (Partial(values[0], values[1:], named),)
    if name == "itertools.product" and all(isinstance(v, (list, tuple)) for v in values) and math.prod(map(len, values)) < 4096:
        return ([tuple(p) for p in itertools.product(*values)],)
    if name == "math.prod" and len(values) == 1 and isinstance(values[0], (list, tuple)) and all(map(is_integer, values[0])):
        return (product(sum(map(factors_of, values[0]), ())),)
    if package == "math" and what in MATH and all(isinstance(v, (int, float)) for v in values):
        try:
            return (getattr(math, what)(*values),)
        except (TypeError, ValueError, OverflowError):
            return (Unknown(),)
    if name == "math.sqrt" and len(values) == 1 and isinstance(values[0], (Real, Sym)):
        return (real(ast.Pow, values[0], 0.5) or Unknown(),)
    if package == "builtins":
        return builtin_fact(e, what, values, named)
    return None


def builtin_fact(e, what, values, named):
    if what in ("min", "max"):
        return (fold(what, min if what == "min" else max, values),)
    if what == "hasattr" and len(values) == 2 and isinstance(values[0], Outside):
        return (has_attribute(e, values[0].name, values[1]),)
    if what in ("len", "range", "list", "tuple", "sorted", "sum", "any", "all", "zip", "enumerate", "dict", "set",
                "reversed", "abs", "str", "bool", "int", "float", "round"):
        if what in ("int", "bool") and len(values) == 1 and isinstance(values[0], Sym):
            return (values[0],)
        if what == "dict":
            return (dict(values[0] if values and isinstance(values[0], dict) else {}, **named),)
        if what == "range" and not (values and all(isinstance(v, int) for v in values) and len(range(*values)) < 4096):
            return (Unknown(),)
        if what in ("any", "all") and len(values) == 1 and isinstance(values[0], (list, tuple)):
            truths = [e.truth(v) for v in values[0]]
            decided = what == "any"
            return (decided if decided in truths else Unknown() if None in truths else not decided,)
        shallow = what in ("len", "list", "tuple", "zip", "enumerate", "reversed")
        if not (known(values) or shallow and all(isinstance(v, (list, tuple, dict, str)) for v in values)):
            return (Unknown(),)
        try:
            result = getattr(builtins, what)(*values)
        except (TypeError, ValueError, OverflowError):
            return (Unknown(),)
        return (list(result) if what in ("range", "zip", "enumerate", "reversed", "set") else result,)
    if what == "getattr" and len(values) >= 2 and isinstance(values[1], str):
        found = e.member(values[0], values[1])
        return (values[2] if len(values) == 3 and isinstance(found, (Unknown, Method)) else found,)
    if what in ("filter", "map") and len(values) == 2 and isinstance(values[1], (list, tuple)):
        made = [e.call(values[0], [v], {}, Scope(None, {}), None) for v in values[1]]
        if what == "map":
            return (made,)
        truths = list(map(e.truth, made))
        return ([v for v, t in zip(values[1], truths) if t] if None not in truths else Unknown(),)
    if what == "isinstance" and len(values) == 2:
        return instance_fact(*values)
    return None


def instance_fact(value, kind):
    kinds = kind if isinstance(kind, (tuple, list)) else (kind,)
    names = {k.name for k in kinds if isinstance(k, Outside)}
    mine = {int: "builtins.int", Sym: "builtins.int", float: "builtins.float", str: "builtins.str", list: "builtins.list",
            tuple: "builtins.tuple", Tensor: "torch.Tensor", dict: "builtins.dict"}.get(type(value))
    return (mine in names,) if mine and len(names) == len(kinds) else (Unknown(),)


def has_attribute(e, name, attribute):
    """Of Triton it is read; of torch only the device that is not there is known."""
    if name == "torch":
        return False if attribute in ("npu", "xpu", "mlu", "musa") else Unknown()
    if not name.startswith("triton"):
        return Unknown()
    module = e.modules.find(name)
    return attribute in module.bound or e.modules.find(f"{name}.{attribute}") is not None if module else \
        Unknown("no triton package is there to look into")


# FlagGems keeps its configurations in tables, and binds names when it starts.
TABLES = "flag_gems.runtime.backend._nvidia"


def flag_gems_name(module, name):
    if module.name == "flag_gems.utils.triton_lang_helper" and name == "tl_extra_shim":
        return Outside("triton.language.extra.libdevice")
    return None


def flag_gems_shim(e, module, node):
    """@use_tl_extra: the function of Triton's own library that is called so, where it has one."""
    shims = [d for d in node.decorator_list if isinstance(d, ast.Name) and d.id == "use_tl_extra"]
    if not shims or not module.name.startswith("flag_gems"):
        return None
    library = "triton.language.extra.libdevice"
    return Outside(f"{library}.{node.name}") if has_attribute(e, library, node.name) is True else None


def flag_gems_call(e, function, values):
    """What its configuration loader answers; a tuple of one, or None where another function is called."""
    what = getattr(function.node, "name", None)
    if function.module.name != "flag_gems.runtime" or not values or not isinstance(values[0], str):
        return None
    if what == "get_heuristic_config":
        return (flag_gems_heuristics(e, values[0]),)
    if what == "get_tuned_config":
        return (flag_gems_configs(e, ("tune_configs.yaml",), values[0]),)
    if what in ("ops_get_configs", "get_expand_config"):
        return (flag_gems_configs(e, ("mm_hopper_expand.yaml", "w8a8_block_fp8_matmul_hopper_expand.yaml"), values[0]),)
    return None


def flag_gems_heuristics(e, op):
    for place in [f"{TABLES}.hopper"] * (e.arch // 10 == 9) + [TABLES]:
        module = e.modules.find(f"{place}.heuristics_config_utils")
        table = e.named(module, "HEURISTICS_CONFIGS") if module else None
        if isinstance(table, dict) and op in table:
            return table[op]
    return Unknown(f"the package has no heuristics for '{op}'")


def flag_gems_configs(e, files, op):
    """The entries of its YAML tables, Hopper's own first."""
    try:
        import yaml
    except ImportError:
        return Unknown("its tables are YAML, and this Python has no PyYAML: python3 -m pip install PyYAML")
    for place in [f"{TABLES}.hopper"] * (e.arch // 10 == 9) + [TABLES]:
        folder = os.path.dirname(e.modules.find(place).path) if e.modules.find(place) else ""
        for path in (os.path.join(folder, name) for name in files):
            if os.path.exists(path):
                with open(path) as f:
                    entries = yaml.safe_load(f).get(op)
                if entries:
                    e.tables.append(path)
                    return [c for entry in entries for c in flag_gems_entry(entry)]
    return Unknown(f"the package's tables have no entry '{op}'")


def flag_gems_entry(entry):
    """One entry as configurations: as it is, or every combination of the lists that it names."""
    if "param_map" not in entry:
        return [flag_gems_config(entry)] if "META" in entry else []
    meta, rest = entry["param_map"]["META"], {k: v for k, v in entry["param_map"].items() if k != "META"}
    metas = entry[meta] if isinstance(meta, str) else [
        dict(zip(meta, values)) for values in itertools.product(*(listed(entry, v) for v in meta.values()))]
    return [flag_gems_config({"META": m, **dict(zip(rest, values))}) for m in metas
            for values in itertools.product(*(listed(entry, v) for v in rest.values()))]


def listed(entry, value):
    return entry[value] if isinstance(value, str) else value if isinstance(value, list) else [value]


def flag_gems_config(entry):
    config = Config(entry["META"])
    config.pre_hook = None
    config.options = {k: entry.get(k, default) for k, default in (("num_warps", 4), ("num_stages", 2), ("num_ctas", 1))}
    return config
