"""klineage from Python: each command of the program is a function, its JSON the result.

    import klineage
    verdict = klineage.gate("gemm", "mine.c", workload="tiny")
    verdict.outcome, verdict.comparisons[0].ratio

Everything runs in the program `klineage`, in its sandbox, with its journal: nothing of a kernel is ever loaded
into this process.  SPDX-License-Identifier: Apache-2.0"""
from klineage.decorator import Optimized
from klineage.program import Failed, command, names, run
from klineage.records import Comparison, Verdict
from klineage.task import Task

__all__ = ["Comparison", "Failed", "Optimized", "Task", "Verdict", "command", "gate", "names", "optimize", "run"]


def gate(task, kernel, **options):
    """One verdict on a kernel file: `klineage gate`.  Options are those of the command, with underscores."""
    return Verdict.of(run("gate", task, kernel, **options))


def optimize(task=None, *, kernels=None, **options):
    """Makes a kernel of a task faster within a budget: `klineage optimize`.  The result is the command's JSON.

    As a decorator, @klineage.optimize or @klineage.optimize(kernels=FOLDER): the function, or the kernel that was made of it before
    (klineage.decorator); nothing is searched for when it is called."""
    if task is None and not options:
        return lambda function: Optimized(function, kernels)
    if callable(task):
        return Optimized(task, kernels)
    return run("optimize", task, **options)


def __getattr__(name):
    """Any other command by its words: klineage.task_list(), klineage.kernel_facts("mine.c", task="gemm")."""
    if name in names():
        return command(name)
    raise AttributeError(f"klineage has no command '{name.replace('_', ' ')}'")
