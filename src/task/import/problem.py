"""problem.py - what every dialect is read into, tried out where torch is, and written as a task folder.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import io
import json
import linecache
import math
import os
import re
import shutil
import sys
import uuid
import warnings

MOST_TENSORS = 64
SPACE = uuid.UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))    # where runner_script.py lies
FLOATS = ("float64", "float32", "float16", "bfloat16")
TOLERANCE = {"float64": 1e-6, "float32": 1e-3, "float16": 4e-2, "bfloat16": 8e-2}
PIP = "python3 -m pip install torch, or name a Python that has it in KLINEAGE_PYTHON"


class Refused(Exception):
    """One clear line, and what is missing on this host (a package), if it is that."""

    def __init__(self, text, missing=""):
        super().__init__(text)
        self.missing = missing


def torch_or_none():
    try:
        warnings.simplefilter("ignore")
        import torch
        return torch
    except ImportError:
        return None


def torch_or_refuse(what):
    torch = torch_or_none()
    if torch is None:
        raise Refused(f"{what} needs torch: {PIP}", missing="torch")
    return torch


def first_line(error):
    if isinstance(error, Refused):
        return str(error)
    return f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0][:160]}"


@contextlib.contextmanager
def quiet():
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


class Script:
    """The text of a reference as the trusted runner will run it: the same helpers, the same device."""

    def __init__(self, text, device="cpu"):
        torch = torch_or_none()
        import runner_script
        self.torch, self.names = torch, []    # of outputs, where it returns a table of them or a definition has them
        self.helpers = runner_script.Scripts(torch, device)
        self.space = {"__name__": "klineage_script", "widened": self.helpers.widened, "generated": self.helpers.generated}
        linecache.cache["klineage_script.py"] = (len(text), None, text.splitlines(True), "klineage_script.py")
        with quiet():
            exec(compile(text, "klineage_script.py", "exec"), self.space)

    def make(self, axes, seed=1):
        with quiet():
            made = self.helpers.generated(self.space["make_inputs"])(self.torch.tensor([seed]), **axes)
        return made

    def run(self, inputs, wide=False):
        """Outputs as a list."""
        run = self.space["run"]
        with quiet(), self.torch.no_grad():
            given = {k: v.clone() if hasattr(v, "clone") else v for k, v in inputs.items()}
            try:
                out = self.helpers.widened(run)(**given) if wide else self.helpers.around(run, (), given)
            except RuntimeError as error:
                if wide or "not implemented for" not in str(error):
                    raise
                out = self.rounded(self.helpers.widened(run)(**given), inputs)    # a type that this torch computes in on a GPU alone
        return self.listed(out)

    def listed(self, out):
        """Outputs in order; of a table by name, as the gate's runner reads it."""
        if isinstance(out, dict):
            wrong = next((k for k in out if not isinstance(k, str) or not re.fullmatch(r"[A-Za-z_]\w{0,62}", k, re.ASCII)), None)
            if wrong is not None:
                raise Refused(f"its reference returns a dict with the key {wrong!r}, which is no name for an output")
            self.names = self.names or list(out)
            missing = next((n for n in self.names if n not in out), None)
            if missing:
                raise Refused(f"its reference returns a dict without `{missing}`")
            out = [out[n] for n in self.names]
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        if not out or not all(isinstance(v, self.torch.Tensor) for v in out):
            raise Refused("its reference returns something else than tensors")
        return out

    def output_names(self, n, inputs):
        """What n outputs are called that no definition names."""
        same = next((name for name in self.names if name in inputs), None)
        if same:
            raise Refused(f"its reference returns a dict with the key `{same}`, which is the name of an input")
        own = ["output"] if n == 1 else [f"output{i}" for i in range(n)]
        return self.names or [name + "_" * (name in inputs) for name in own]


    def rounded(self, out, inputs):
        """To the narrowest float among the inputs, which is what the author computes in."""
        floats = [v.dtype for v in inputs.values() if hasattr(v, "dtype") and v.is_floating_point()]
        dtype = min(floats, key=lambda d: self.torch.finfo(d).bits, default=self.torch.float32)
        out = list(out.values()) if isinstance(out, dict) else list(out) if isinstance(out, (tuple, list)) else [out]
        return [v.to(dtype) if v.dtype == self.torch.float64 else v for v in out]


def dtype_name(tensor):
    return str(tensor.dtype).split(".")[-1]


def close(torch, a, b, tolerance):
    """Relative to the size of the whole, as an error budget is."""
    a, b = a.to(torch.float64), b.to(torch.float64)
    if a.shape != b.shape:
        return False
    same = (a == b) | (a.isnan() & b.isnan())
    size = max(1e-30, float(b[b.isfinite()].square().mean().sqrt()) if b.isfinite().any() else 1)
    far = ((a - b).abs() / size)[~same]
    return far.numel() == 0 or bool((far < tolerance * 100).all()) and float(far.square().sum() / a.numel()) ** 0.5 < tolerance


def is_dull(torch, inputs, outputs):
    """Would a wrong answer pass here?  Zeros, ones, a copied input, the mean and a moved answer are what `task check` tries."""
    first = next((v.reshape(-1).to(torch.float64) for v in inputs.values() if hasattr(v, "shape") and v.numel()), None)
    for out in outputs:
        flat = out.reshape(-1).to(torch.float64)
        if close(torch, torch.zeros_like(flat), flat, 1e-3):
            return True
        if flat.numel() < 4:
            continue
        wrong = [torch.ones_like(flat), flat.mean().expand_as(flat), flat.roll(-1)]
        if first is not None:
            wrong.append(first[torch.arange(flat.numel()) % first.numel()])
        if any(close(torch, w, flat, 1e-3) for w in wrong):
            return True
    return False


def holds_wide(script, inputs, dtypes):
    """'' if the reference runs in float64 and says the same, else why not."""
    try:
        own, wide = script.run(inputs), script.run(inputs, wide=True)
    except Exception as error:
        return first_line(error)
    for dtype, a, b in zip(dtypes, own, wide):
        if dtype in FLOATS and not close(script.torch, b, a, TOLERANCE[dtype]):
            return "its answers differ, so the rounding in it is meant"
    return ""


class Problem:
    """A definition and its workloads, as they will be written."""

    def __init__(self, name, dialect):
        self.name, self.dialect = name, dialect
        self.description, self.op_type, self.reference = "", "", ""
        self.axes, self.inputs, self.outputs, self.constraints, self.tags = {}, {}, {}, [], []
        self.entry, self.section, self.workloads = None, {}, []
        self.skipped, self.notes, self.files, self.blobs = [], [], {}, {}
        self.script = self.make = self.values_of = None    # what ran, and how inputs are made for it: a draft is traced from them
        self.cases = []

    def add(self, axes, label, inputs=None, hidden=False, on=None, line=None):
        ours = {"label": label, **({"hidden": True} if hidden else {}), **({"on": on} if on else {})}
        shown = {k: v for k, v in axes.items() if self.axes[k]["type"] == "var"}
        key = uuid.uuid5(SPACE, f"{self.name} {label} {sorted(shown.items())}")
        line = dict(line or {"uuid": str(key), "axes": shown, "inputs": inputs or {n: {"type": "random"} for n in self.inputs}})
        self.workloads.append({**line, "klineage": {**line.get("klineage", {}), **ours}})

    def definition(self):
        d = {"name": self.name, "op_type": self.op_type, "description": self.description, "axes": self.axes, "inputs": self.inputs,
             "outputs": self.outputs, "reference": self.reference}
        if self.constraints:
            d["constraints"] = self.constraints
        if self.tags:
            d["tags"] = self.tags
        if self.entry:
            d["custom_inputs_entrypoint"] = self.entry
        if self.section:
            d["klineage"] = self.section
        return d


def with_naive(p):
    """A plain kernel, if one can be drafted; else a note says why not."""
    from draft import drafted
    from draft_check import checked
    from trace import NoDraft
    if not p.script or not p.cases:
        return
    try:
        text, args, _ = drafted(p, p.make, p.axes)
        said = checked(p, p.make, text, args, p.values_of)
        p.files["naive.c"] = text
        if said:
            p.notes.append(said)
    except NoDraft as reason:
        p.notes.append(f"no naive kernel was drafted: {reason}")
    except Exception as error:
        if os.environ.get("KLINEAGE_IMPORT_TRACE"):
            raise
        p.notes.append(f"no naive kernel was drafted: {first_line(error)}")


def written(p, folder):
    with_naive(p)
    if len(p.inputs) + len(p.outputs) > MOST_TENSORS:
        raise Refused(f"{len(p.inputs) + len(p.outputs)} tensors; a task has at most {MOST_TENSORS}")
    if not p.workloads:
        raise Refused("no shape was found at which its reference runs")
    hidden = sum(bool(w["klineage"].get("hidden")) for w in p.workloads)
    if not hidden:
        p.notes.append("no hidden shape: none was found beside its own at which the reference runs and a trivial answer is wrong")
    os.makedirs(os.path.join(folder, "baseline") if any("/" in f for f in p.files) else folder)
    files = {"definition.json": json.dumps(p.definition(), indent=1) + "\n",
             "workloads.jsonl": "".join(json.dumps(w) + "\n" for w in p.workloads), **p.files}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    for name, source in p.blobs.items():
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copyfile(source, os.path.join(folder, name))
    return {"task": p.name, "shapes": len(p.workloads) - hidden, "hidden": hidden, "naive": "naive.c" in p.files,
            "oracle": p.section.get("oracle", "own precision"), "generated": bool(p.entry), "notes": p.notes, "skipped": p.skipped}


def product(values):
    return math.prod(values)
