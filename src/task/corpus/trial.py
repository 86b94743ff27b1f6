"""trial.py - in a confined child: how is a candidate made and called, is it a function of its inputs, what does it run?

The text of its closure runs here for the first time.  What comes out is a problem in KernelBench's form (`Model`,
`get_inputs`), which `task import` reads as any other.
SPDX-License-Identifier: Apache-2.0
"""
import inspect
import os
import re
import time
import types

import alike
import recipe
from closure import Refused

SECONDS = 5    # of processor time, for trying one candidate
MOST_ELEMS = 1 << 20

HELPERS = '''def draw(*shape):
    """Normal numbers with zeros and large ones among them."""
    x = torch.randn(shape)
    flat = x.view(-1)
    flat[5::61], flat[11::61], flat[17::61] = 0.0, 4.0, -4.0
    return x


def positive(*shape):
    return torch.rand(shape) * 0.9 + 0.05


def whole(*shape):
    return torch.randint(0, 8, shape)


def mask(*shape):
    x = torch.rand(shape) < 0.75
    x[..., 0] = True    # a row without any is no honest case
    return x


def vary(model):
    """Weights that all are one number hide mistakes: each becomes a little different."""
    for value in [*model.parameters(), *model.buffers()]:
        if value.is_floating_point() and value.numel() > 1 and bool((value == value.reshape(-1)[0]).all()):
            value.data.add_(torch.rand_like(value) * 0.5)
    return model


def tensors(out):
    """What it returns, without what is no tensor."""
    if isinstance(out, torch.Tensor):
        return out
    parts = list(out.values()) if hasattr(out, "values") else list(out) if isinstance(out, (tuple, list)) else []
    found = [v for part in parts for v in (part if isinstance(part, (tuple, list)) else [part]) if isinstance(v, torch.Tensor)]
    return found[0] if len(found) == 1 else found
'''
RESERVED = {"Model", "get_inputs", "get_init_inputs", "draw", "positive", "whole", "mask", "vary", "tensors", "types", *recipe.SIZES}


class Tried:
    """One way that worked: texts by parameter."""

    def __init__(self, made, given, out):
        self.made, self.given, self.out = made, given, out


def space_of(torch, text):
    space = {"__name__": "candidate", "torch": torch, "types": types, **{n: small for n, (small, _) in recipe.SIZES.items()}}
    exec(compile(HELPERS, "helpers", "exec"), space)
    exec(compile(text, "candidate", "exec"), space)
    return space


def flat(torch, out):
    if isinstance(out, torch.Tensor):
        return [out]
    parts = list(out.values()) if hasattr(out, "values") else list(out) if isinstance(out, (tuple, list)) else []
    return [v for part in parts for v in (part if isinstance(part, (tuple, list)) else [part]) if isinstance(v, torch.Tensor)]


class Trial:
    def __init__(self, torch, job):
        self.torch, self.job = torch, job
        self.end, self.why, self.seen_bad = time.process_time() + SECONDS, "", ""
        self.space = space_of(torch, job["text"])
        self.target = self.space[job["name"]]

    # -- making

    def value(self, text):
        return eval(text, self.space)

    def models(self):
        """(texts, callable) of each way to make it."""
        if self.job["kind"] != "module":
            yield [], self.target
            return
        names = recipe.required(self.target.__init__, skip=1)
        if len(names) > 9:
            raise Refused("takes more than is guessed", f"{len(names)} arguments to make it")
        ways = recipe.makings(names, self.job["annotations"].get("__init__", {}), self.job["attributes"])
        if not ways:
            raise Refused("takes what is not guessed", f"to make it: {', '.join(names)}")
        for way in ways:
            if time.process_time() > self.end:
                return
            try:
                self.torch.manual_seed(0)
                model = self.target(**{n: self.value(t) for n, t in way})
                if sum(p.numel() for p in model.parameters()) > 4 * MOST_ELEMS:
                    self.why = self.why or "has more than 4 M weights at its smallest"
                    continue
                yield way, self.space["vary"](model).eval()
            except Exception as error:
                self.why = self.why or f"made: {self.line(error)}"

    def line(self, error):
        return f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0][:120]}"

    # -- calling

    def call(self, target, given, seed=1):
        torch = self.torch
        torch.manual_seed(seed)
        values = {n: self.value(t) for n, t in given}
        kept = [v.clone() for v in values.values() if isinstance(v, torch.Tensor)]
        with torch.no_grad():
            out = flat(torch, target(**values))
        return out, kept

    def found(self):
        where = "forward" if self.job["kind"] == "module" else self.job["name"]
        annotations = self.job["annotations"].get(where, {})
        kind = "forward" if self.job["kind"] == "module" else "function"
        for made, model in self.models():
            function = model.forward if self.job["kind"] == "module" else model
            names = recipe.required(function)
            if len(names) > 8:
                raise Refused("takes more than is guessed", f"{len(names)} inputs")
            if not names:
                names = list(inspect.signature(function).parameters)[:1]
            if not names:
                raise Refused("takes no input")
            for given in recipe.givings(names, annotations, self.job["text"], kind):
                if time.process_time() > self.end:
                    raise Refused("no inputs were found in time", self.why)
                tried = self.attempt(made, model, given)
                if tried:
                    return tried
        raise Refused(*(self.seen_bad or ("no inputs were found", self.why or "none are guessed for what it takes")))

    def attempt(self, made, model, given):
        torch = self.torch
        try:
            out, kept = self.call(model, given)
        except Exception as error:
            self.why = self.why if self.why.startswith("called") else f"called: {self.line(error)}"
            return None
        bad = self.bad_values(out, kept)
        if not bad:
            bad = self.bad_function(model, given, out)
        if bad:
            self.seen_bad = self.seen_bad or bad
            return None
        return Tried(made, given, out)

    # -- is it worth a task?

    def bad_values(self, out, kept):
        torch = self.torch
        if not out:
            return "returns no tensor", ""
        for v in out:
            if v.is_complex() or v.is_sparse:
                return "returns complex or sparse numbers", str(v.dtype)
            if v.numel() == 0 or v.numel() > MOST_ELEMS:
                return "returns nothing or too much", str(tuple(v.shape))
            if v.is_floating_point() and not bool(v.isfinite().all()):
                return "its values are not finite", ""
        if all(v.numel() > 1 and bool((v == v.reshape(-1)[0]).all()) for v in out):
            return "its answer is one number everywhere", ""
        if any(v.shape == k.shape and v.dtype == k.dtype and torch.equal(v, k) for v in out[:1] for k in kept):
            return "returns its input", ""
        return None

    def bad_function(self, model, given, out):
        torch = self.torch
        try:
            torch.manual_seed(7)
            again, _ = self.call(model, given)
            values = {}
            torch.manual_seed(1)
            values = {n: self.value(t) for n, t in given}
            torch.manual_seed(99)
            with torch.no_grad():
                third = flat(torch, model(**values))
            other, _ = self.call(model, given, seed=2)
        except Exception as error:
            return "does not run twice", self.line(error)
        same = all(len(o) == len(out) and all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(o, out)) for o in (again, third))
        if not same:
            return "draws random numbers or keeps state between calls", ""
        if len(other) == len(out) and all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(other, out)):
            return "its answer does not depend on its inputs", ""
        return None

    def operators(self, tried):
        """What it runs, as names of torch's own operators."""
        from torch.utils._python_dispatch import TorchDispatchMode
        names = []

        class Mode(TorchDispatchMode):
            @classmethod
            def _should_skip_dynamo(cls):
                return False

            def __torch_dispatch__(self, operator, _types, args=(), kwargs=None):
                names.append(operator._schema.name.split("::")[-1].rstrip("_"))
                return operator(*args, **(kwargs or {}))
        model = next(m for made, m in self.models() if made == tried.made)
        values = {n: self.value(t) for n, t in tried.given}
        with self.torch.no_grad(), Mode():
            model(**values)
        return names[:400]


# ---- the problem ---------------------------------------------------------------------------------------------------------

def used_sizes(*texts):
    words = set(re.findall(r"\w+", " ".join(texts)))
    return [n for n in recipe.SIZES if n in words]


def problem(job, tried):
    """The file that `task import` reads."""
    inputs = [n for n, t in tried.given if re.match(r"(draw|positive|whole|mask)\(", t)]
    fixed = [(n, t) for n, t in tried.given if n not in inputs]
    names = [n if n not in RESERVED else f"{n}_" for n in inputs]
    made = ", ".join(f"{n}={t}" for n, t in tried.made)
    call = ", ".join([f"{n}={m}" for n, m in zip(inputs, names)] + [f"{n}={t}" for n, t in fixed])
    sizes = used_sizes(made, call, *[t for _, t in tried.given])
    title = " ".join((job.get("doc") or f"{job['name']} of {job['package']}").split())[:300].replace("\\", "/").replace('"', "'")
    body = f"self.body = {job['name']}({made})\n        vary(self)\n        self.eval()" if job["kind"] == "module" else "pass"
    target = "self.body" if job["kind"] == "module" else job["name"]
    lines = [f"# From {job['package']} {job['version']}, {job['file']}:{job['line']}; licence: {job['licence']}.", "import types", "import torch", job["text"], HELPERS, "",
             *[f"{n} = {recipe.SIZES[n][1]}" for n in sizes], "", "",
             "class Model(torch.nn.Module):", f'    """{title}"""', "", "    def __init__(self):", "        super().__init__()", f"        {body}", "",
             f"    def forward(self, {', '.join(names)}):", f"        return tensors({target}({call}))", "", "",
             "def get_inputs():", f"    return [{', '.join(t for n, t in tried.given if n in inputs)}]", ""]
    return "\n".join(lines)


def taken(job, folder):
    """The record of one candidate; runs its code, so only in a child that is confined."""
    import torch
    try:
        trial = Trial(torch, job)
        tried = trial.found()
        operators = trial.operators(tried)
    except Refused as refusal:
        return {"stage": "runs", "reason": refusal.reason, "detail": refusal.detail}
    except Exception as error:
        return {"stage": "runs", "reason": "fails when it is read", "detail": f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0][:160]}"}
    place = os.path.join(folder, "problem.py")
    with open(place, "w") as file:
        file.write(problem(job, tried))
    return {"stage": "runs", "reason": None, "operators": operators, "given": dict(tried.given), "made": dict(tried.made), "problem": place}


def imported(place, job, operators, folder):
    """Through `task import`'s own reader; its record."""
    import kernelbench
    from problem import Refused as NotImported, written
    import draft_cuda
    try:
        p = kernelbench.read(place, "")
        p.name = job["task"]
        p.op_type = alike.family(operators)
        p.tags = [f"package:{job['package']}=={job['version']}", f"file:{job['file']}:{job['line']}", f"licence:{job['licence']}", f"name:{job['id']}",
                  *(f"expert:{e}" for e in job["experts"])]
        answer = {"error": None, **written(p, folder)}
        on_gpu = answer["naive"] and draft_cuda.drafted(p.files["naive.c"])
        if on_gpu:
            with open(os.path.join(folder, "naive.cu"), "w") as file:
                file.write(on_gpu)
        return answer
    except NotImported as refusal:
        return {"error": str(refusal)}
    except MemoryError:
        return {"error": "it takes more memory than is allowed here"}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0][:160]}"}


