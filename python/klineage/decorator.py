"""@klineage.optimize: a function that is replaced by a kernel which was made of it before, and is itself otherwise.

    @klineage.optimize
    def scaled_gelu(x, scale): ...

    scaled_gelu(x, s)                                    # the kernel, if there is one
    scaled_gelu.optimize((x, s), model=..., budget=5)    # makes one: minutes, and money

A call never searches.  The first one looks into FOLDER/NAME-ID/export, where ID is of the function's own text, so that a kernel of
an older text is not found; from then on a call is a test for gradients and the operator's.  What the operator refuses (a shape at
which the gate did not check it, another data type or device), and what needs a gradient, is the function's.
SPDX-License-Identifier: Apache-2.0"""
import functools
import hashlib
import importlib
import inspect
import json
import os
import shutil
import sys
from pathlib import Path

from klineage.program import Failed, run
from klineage.task import Task, place_of

DEFAULT = "klineage-kernels"    # beside the file of the function


class Optimized:
    """`kernel` is the operator in use, None before the first call and where there is none; `found` where it lies."""

    def __init__(self, function, folder=None):
        functools.update_wrapper(self, function)
        self.function, self.kernel, self.call = function, None, None
        self.place = place_of(function)
        folder = folder or os.environ.get("KLINEAGE_KERNELS") or Path(inspect.getsourcefile(function)).parent / DEFAULT
        identity = hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:16]
        self.folder = Path(folder) / f"{function.__name__}-{identity}"

    def __call__(self, *args, **kwargs):
        return (self.call or self.choose())(*args, **kwargs)

    def __repr__(self):
        return f"<klineage.optimize {self.place}: {self.found or 'the function itself'}>"

    @property
    def found(self):
        place = self.folder / "export"
        return place if (place / "provenance.json").exists() else None

    def choose(self):
        """What calls from now on go to."""
        self.kernel = operator_of(self.found) if self.found else None
        self.call = guarded(self.function, self.kernel) if self.kernel else self.function
        return self.call

    def optimize(self, args, kwargs=None, **options):
        """Searches for a faster kernel of the function, at the shapes and data types of this one call, and uses it from the next call on.

        Options are those of `klineage optimize`.  The result is its JSON; where nothing was faster, nothing changes.  Raises Failed."""
        shutil.rmtree(self.folder / "task", ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        task = Task.from_call(self.place, self.function, args, kwargs or {}, self.folder / "task")
        best = self.folder / f"best.{options.pop('ending', 'c')}"
        best.unlink(missing_ok=True)
        said = task.optimize(out=best, **options)
        if any(track.get("call") == "faster" for track in said["tracks"]):
            run("export", best, task=task.place, out=self.folder / "export", force=True, **{"as": "torch"})
            self.call = None
        return said


def guarded(function, kernel):
    import torch
    with_gradients = torch.is_grad_enabled

    def call(*args, **kwargs):
        if kwargs or with_gradients() and any(getattr(a, "requires_grad", False) for a in args):
            return function(*args, **kwargs)
        try:
            return kernel(*args)
        except ValueError:    # it refuses before it computes
            return function(*args)
    return call


def operator_of(export):
    """The function of an exported package, loaded once under a name of its own."""
    name = json.loads((export / "provenance.json").read_text())["name"]
    alias = f"klineage_kernels_{export.parent.name.replace('-', '_')}"
    if alias not in sys.modules:
        spec = importlib.util.spec_from_file_location(alias, export / name / "__init__.py", submodule_search_locations=[str(export / name)])
        module = importlib.util.module_from_spec(spec)
        sys.modules[alias] = module
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[alias]
            if isinstance(error, Exception):
                raise Failed(2, f"{export / name} cannot be loaded: {error}", "export it again, or remove that folder") from error
            raise
    return getattr(sys.modules[alias], name)
