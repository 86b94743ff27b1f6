"""A task as an object: of a folder, of a shipped name, or made of a Python function and what it is called with.

SPDX-License-Identifier: Apache-2.0"""
import inspect
import tempfile
from pathlib import Path

from klineage.plain import undecorated
from klineage.program import Failed, run
from klineage.records import Verdict


class Task:
    """What must be computed: shapes, inputs, oracle, baselines.  `place` is a folder or the name of a shipped task."""

    def __init__(self, place):
        self.place = str(place)

    def __repr__(self):
        return f"Task({self.place!r})"

    @classmethod
    def from_torch(cls, function, *args, out, **kwargs):
        """A task folder at `out`, of a function at module level and one call of it: from_torch(f, x, w, out="tasks/f").

        Arguments are tensors or numbers; of a tensor only shape and data type are looked at, and sizes that are equal become
        one axis.  The file of the function is run once more in a process of its own (`klineage task import`), so what it does
        when imported happens there too.  Raises Failed where the function cannot be a task, with the reason."""
        return cls.from_call(place_of(function), function, args, kwargs, out)

    @classmethod
    def from_call(cls, place, function, args, kwargs, out):
        """Of the function whose text lies at FILE.py:NAME, without the imports of klineage in it."""
        file, _, name = place.rpartition(":")
        with tempfile.TemporaryDirectory() as folder:
            text = Path(file).read_text()
            plain = Path(folder, Path(file).name)
            plain.write_text(undecorated(text))
            source = place if plain.read_text() == text else f"{plain}:{name}"
            run("task_import", source, inputs=spoken(function, args, kwargs), out=out)
        return cls(out)

    def gate(self, kernel, **options):
        """One verdict on a kernel file, as klineage.gate."""
        return Verdict.of(run("gate", self.place, kernel, **options))

    def check(self, **options):
        """Is the task's own check strict enough?  The JSON of `klineage task check`."""
        return run("task_check", self.place, **options)

    def optimize(self, **options):
        """Makes a kernel faster within a budget.  The JSON of `klineage optimize`."""
        return run("optimize", self.place, **options)


def place_of(function):
    """FILE.py:NAME.  Raises Failed for what has no such place: lambdas, methods, modules, what was typed at a prompt."""
    name = getattr(function, "__qualname__", type(function).__name__)
    if not inspect.isfunction(function) or not name.isidentifier():
        raise Failed(2, f"{name} is no function at the top of a file", "a module becomes a task as KernelBench writes one: klineage task import --help")
    try:
        return f"{inspect.getsourcefile(function)}:{name}"
    except TypeError:
        raise Failed(2, f"{name} was not read from a file", "put it into one, and import it from there") from None


def spoken(function, args, kwargs):
    """The words of --inputs for one call: x: float32[n0=512,n1=1024], s: 0.5"""
    try:
        call = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise Failed(2, f"{function.__name__} cannot be called so: {error}") from None
    axes = {}
    return ", ".join(f"{name}: {spoken_one(value, axes)}" for name, value in call.arguments.items())


def spoken_one(value, axes):
    if not hasattr(value, "shape"):
        return repr(value)
    dims = []
    for size in value.shape:
        dims.append("1" if size == 1 else axes[size] if size in axes else f"n{len(axes)}={size}")
        if size > 1:
            axes.setdefault(size, f"n{len(axes)}")
    return f"{str(value.dtype).removeprefix('torch.')}[{','.join(dims)}]"
