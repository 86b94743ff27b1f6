"""kernelbench.py - a KernelBench problem: `Model`, `get_inputs` and `get_init_inputs` in one file.

Its numbers at module level are the parameters: the module is read again with others in their place.  Parameters
and buffers of the model become inputs, since a kernel must be given them; too many become one, `weights`.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import os
import re

from observe import Observer
from problem import Refused, Script, first_line, torch_or_refuse

TITLE = "KernelBench"
MOST_WEIGHTS = 40

TEXT = '''"""{title}: `Model` as a function of its inputs and its parameters."""
import ast
import torch

SOURCE = {source!r}
FIXED = {fixed!r}    # numbers at module level that stay
FROM = {where!r}    # where the others are seen: (input, dimension)
TENSORS, WEIGHTS, PACKED = {tensors!r}, {weights!r}, {packed!r}
SEED, KEPT = 0, dict()


def forget():
    KEPT.clear()


class Other(ast.NodeTransformer):
    """The same module with other numbers."""

    def __init__(self, numbers):
        self.numbers = numbers

    def visit_Assign(self, node):
        target = node.targets[0]
        if node.col_offset == 0 and isinstance(target, ast.Name) and target.id in self.numbers:
            node.value = ast.copy_location(ast.Constant(self.numbers[target.id]), node.value)
        if node.col_offset == 0 and isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            names = [getattr(t, "id", "") for t in target.elts]
            node.value.elts = [ast.copy_location(ast.Constant(self.numbers[n]), v) if n in self.numbers else v for n, v in zip(names, node.value.elts)]
        return node


def module(numbers):
    """(its names, its model), kept per precision; what it draws while it is made is always the same."""
    key = (tuple(sorted(numbers.items())), torch.get_default_dtype())
    if key not in KEPT:
        space = dict(__name__="problem")
        exec(compile(ast.fix_missing_locations(Other(numbers).visit(ast.parse(SOURCE))), "problem.py", "exec"), space)
        state = torch.get_rng_state()
        torch.manual_seed(SEED)
        KEPT[key] = space, space["Model"](*space.get("get_init_inputs", list)())
        torch.set_rng_state(state)
    return KEPT[key]


def state_of(model):
    return {{k: v for k, v in {{**dict(model.named_parameters()), **dict(model.named_buffers())}}.items() if v.is_floating_point()}}


def make_inputs(axes_and_scalars, device):
    space, _ = module({{**FIXED, **{{k: v for k, v in axes_and_scalars.items() if k != "kl_seed"}}}})
    model = space["Model"](*space.get("get_init_inputs", list)())
    given = space["get_inputs"]()
    made = {{name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in zip(TENSORS, given)}}
    weights = [v.detach().to(device) for v in state_of(model).values()]
    if PACKED:
        return {{**made, "weights": torch.cat([v.reshape(-1).float() for v in weights])}}
    return {{**made, **dict(zip(WEIGHTS, weights))}}


def run({arguments}):
    inputs = dict({pairs})
    _, model = module({{**FIXED, **{{k: inputs[n].shape[d] for k, (n, d) in FROM.items()}}}})
    state = state_of(model)
    if PACKED:
        parts = inputs["weights"].split([v.numel() for v in state.values()])
        state = {{k: part.reshape(v.shape) for (k, v), part in zip(state.items(), parts)}}
    else:
        state = {{k: inputs[name].clone() for k, name in zip(state, WEIGHTS)}}
    device = next((v.device for v in inputs.values() if isinstance(v, torch.Tensor)), None)
    call = getattr(torch, "func", None) and torch.func.functional_call
    if not call:
        from torch.nn.utils.stateless import functional_call as call
    return call(model.to(device), state, tuple(inputs[n] for n in TENSORS))
'''


def text_of(place):
    with open(place, errors="replace") as file:
        return file.read()


def is_one(place):
    return place.endswith(".py") and os.path.isfile(place) and all(
        re.search(p, text_of(place), re.M) for p in (r"^class Model\b", r"^def get_inputs\b"))


def name_of(place, _source):
    return os.path.splitext(os.path.basename(place))[0]


def numbers_of(tree):
    """Whole numbers at module level, by the first name that each is given."""
    found = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        pairs = [(target, node.value)] if isinstance(target, ast.Name) else \
            list(zip(target.elts, node.value.elts)) if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) else []
        for name, text in pairs:
            try:
                value = eval(compile(ast.Expression(text), "number", "eval"), {"__builtins__": {}}, {})
            except Exception:    # it is made of others, or is no number
                continue
            if isinstance(name, ast.Name) and type(value) is int and value > 0:
                found[name.id] = value
    return found


def forward_names(tree, n):
    model = next(c for c in tree.body if isinstance(c, ast.ClassDef) and c.name == "Model")
    forward = next((f for f in model.body if isinstance(f, ast.FunctionDef) and f.name == "forward"), None)
    names = [a.arg for a in forward.args.args[1:]] if forward else []
    return (names + [f"x{i}" for i in range(len(names), n)])[:n]


def look(source, numbers):
    """How many inputs, and the state of the model, seen once at the smallest sizes that can be had."""
    from shapes import tiny_candidates
    probe = TEXT.format(title="probe", source=source, fixed={}, where={}, tensors=[], weights=[], packed=False, arguments="", pairs="")
    script, why = Script(probe), ""
    for params in tiny_candidates(numbers, list(numbers)):
        if max(list(params.values()) + [0]) > 1 << 16:
            break
        try:
            space, model = script.helpers.around(script.space["module"], (params,), {})
            return script.helpers.around(space["get_inputs"], (), {}), list(script.space["state_of"](model))
        except Exception as error:
            why = why or first_line(error)
    raise Refused(why or "its inputs could not be made at a small size")


def read(place, _inputs):
    torch = torch_or_refuse("a PyTorch module")
    source = text_of(place)
    tree = ast.parse(source)
    numbers = numbers_of(tree)
    given, state = look(source, numbers)
    for value in given:
        if not isinstance(value, (torch.Tensor, int, float)):
            raise Refused(f"get_inputs gives a {type(value).__name__}: only tensors and numbers can be passed to a kernel")
    tensors = forward_names(tree, len(given))
    packed = len(state) > MOST_WEIGHTS
    weights = [re.sub(r"\W", "_", k)[:60] for k in state]
    weights = [w + "_" if w in tensors else w for w in weights]
    names = tensors + (["weights"] if packed else weights)

    def text(fixed, where):
        return TEXT.format(title=name_of(place, ""), source=source, fixed=fixed, where=where, tensors=tensors, weights=weights, packed=packed,
                           arguments=", ".join(names), pairs=", ".join(f"{n}={n}" for n in names))
    said = ast.get_docstring(next(c for c in tree.body if isinstance(c, ast.ClassDef) and c.name == "Model")) or ""
    observer = Observer(name_of(place, ""), TITLE, text, [("real", numbers, False)], list(numbers))
    p = observer.problem(" ".join(said.split())[:400], needs_where=True)
    p.tags = ["dialect:kernelbench"]
    return p
