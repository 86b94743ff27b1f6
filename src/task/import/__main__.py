"""import - problems of other people's collections as task folders.

usage: python3 -B task_import SOURCE FOLDER [INPUTS]

SOURCE is a file, a folder with one problem or many, or MODULE:FUNCTION with INPUTS.  FOLDER is empty; each problem
becomes a folder in it, and a line of JSON on stdout says what became of it.  Whoever asked for it reads the
folders as tasks and puts them where they belong, so nothing half-written is ever in place.

Each problem is taken in a process of its own, with a limit of time and memory: its code runs, as the oracle's
does later.  A dialect (flashinfer, kernelbench, kernelbot, function) reads a problem into a definition whose
`reference` is Python text with `run`, and with `make_inputs` where inputs are no draws.  What is the same for
all is done once: tiny, odd and real shapes (shapes.py), a float64 oracle if it holds, a naive kernel (draft.py).
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import resource
import select
import signal
import sys
import time

import flashinfer
import function
import kernelbench
import kernelbot
from problem import Refused, written
from watch import Watch

DIALECTS = (function, flashinfer, kernelbot, kernelbench)
SECONDS = int(os.environ.get("KLINEAGE_IMPORT_SECONDS", "150"))    # of one problem
MEMORY = 12 << 30
MOST_PROBLEMS = 4096


def found(source):
    """(dialect, place) of every problem."""
    for dialect in DIALECTS:
        if dialect.is_one(source):
            return [(dialect, source)]
    if not os.path.exists(source):
        raise Refused(f"{source}: no such file or folder; a function is MODULE:FUNCTION or FILE.py:FUNCTION")
    if not os.path.isdir(source):
        raise Refused(f"{source}: not a problem that can be read: a definition's .json, a task.yml, a .py with Model and get_inputs, FILE.py:FUNCTION")
    problems = []
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for place in [folder] + [os.path.join(folder, f) for f in sorted(files)]:
            dialect = next((d for d in DIALECTS[1:] if d.is_one(place)), None)
            if dialect and not (os.path.isfile(place) and any(p == folder for _, p in problems)):
                problems.append((dialect, place))
    if not problems:
        raise Refused(f"{source}: no problem in it: no definitions/, definition.json, task.yml, or .py with Model and get_inputs")
    return problems[:MOST_PROBLEMS]


def taken(dialect, place, folder, inputs):
    """In a child: its code may exit, hang or take all memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    try:
        watch = Watch()
        problem = dialect.read(place, inputs)
        watch.refuse()
        return written(problem, folder)
    except Refused as refusal:
        return {"error": str(refusal), "missing": refusal.missing}
    except MemoryError:
        return {"error": "it takes more than %d GiB here" % (MEMORY >> 30)}
    except Exception as error:
        if os.environ.get("KLINEAGE_IMPORT_TRACE"):
            raise
        return {"error": f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0][:200]}"}


def ask(dialect, place, folder, inputs):
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(read_end)
        os.dup2(2, 1)    # what the problem prints is no answer
        answer = taken(dialect, place, folder, inputs)
        os.write(write_end, json.dumps(answer).encode()) if len(json.dumps(answer)) < 60000 else None
        os._exit(0)
    os.close(write_end)
    text, end = b"", time.monotonic() + SECONDS
    while True:
        ready, _, _ = select.select([read_end], [], [], max(0, end - time.monotonic()))
        part = os.read(read_end, 65536) if ready else b""
        text += part
        if not part:
            break
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read_end)
    return json.loads(text) if text else {"error": f"not read within {SECONDS} s" if time.monotonic() >= end else "its code ended the process"}


def load_the_rest(torch):
    """What newer releases load when a mode first sees an operator: seconds, for each child anew."""
    from trace import Recording
    one = torch.ones(2)
    Recording(torch, {"x": one}).run(lambda: [one + one])


def main(arguments):
    source, out, inputs = (arguments + [""])[:3]
    try:
        problems = found(source)
    except Refused as refusal:
        print(refusal, file=sys.stderr)
        return 1
    try:
        import torch    # once, for all children
        import torch.utils._python_dispatch  # noqa: F401
        torch.set_num_threads(1)
        load_the_rest(torch)
    except ImportError:
        pass
    names = set()
    for dialect, place in problems:
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", dialect.name_of(place, source)) or "task"
        while name in names:
            name += "_"
        names.add(name)
        folder = os.path.join(out, name)
        answer = {"name": name, "dialect": dialect.TITLE, "source": place, "folder": folder, "error": None}
        answer.update(ask(dialect, place, folder, inputs))
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
