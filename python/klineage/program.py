"""The program: where it is, its table of commands, one call of it.  SPDX-License-Identifier: Apache-2.0"""
import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

RESULTS = {0, 1, 3, 4, 5, 6, 9, 10, 14}  # exit statuses of an answer; the others are failures of the call itself


class Failed(Exception):
    """The call failed: `status` is the exit status (klineage help exit), `hint` the next thing to try."""

    def __init__(self, status, message, hint=""):
        super().__init__(message + (f"\nhint: {hint}" if hint else ""))
        self.status, self.message, self.hint = status, message, hint


def path():
    """KLINEAGE_PROGRAM, the one that lies in this package (a wheel), or the one on PATH."""
    own = Path(__file__).parent / "bin" / "klineage"
    found = os.environ.get("KLINEAGE_PROGRAM") or (str(own) if own.exists() else shutil.which("klineage"))
    if not found:
        raise Failed(7, "the program klineage is not on PATH", "build it, or name it in KLINEAGE_PROGRAM")
    return found


@functools.cache
def table():
    """Every command with its positional words, options and examples, as the program itself says them."""
    return json.loads(subprocess.run([path(), "--generate", "commands"], check=True, capture_output=True).stdout)


@functools.cache
def schema(record):
    """The JSON schema of a record that commands print."""
    return json.loads(subprocess.run([path(), "--generate", f"schema-{record}"], check=True, capture_output=True).stdout)


def names():
    """Commands by a name that Python and agents can say: `task list` is task_list."""
    return {c["words"].replace(" ", "_"): c for c in table()["commands"]}


def arguments(name, words, options):
    """The words of a shell for one call.  Raises Failed where the command has no such option."""
    found = names().get(name)
    if not found:
        raise Failed(2, f"klineage has no command '{name.replace('_', ' ')}'", "klineage.names() lists them")
    known = {o["name"].replace("-", "_"): o for o in found["options"]}
    argv = [path(), *found["words"].split(), "--json"]
    for key, value in options.items():
        if key not in known:
            raise Failed(2, f"klineage {found['words']} has no option --{key.replace('_', '-')}",
                         f"it has: {', '.join(sorted(known))}")
        argv += spelled(known[key], value)
    return [*argv, "--", *map(str, words)]


def spelled(option, value):
    """One option of a shell: nothing for None and False, itself for True, each of a list."""
    if value is None or value is False:
        return []
    if value is True:
        return ["--" + option["name"]]
    many = value if isinstance(value, (list, tuple)) else [value]
    return [f"--{option['name']}={one}" for one in many]


def answer(status, out, err):
    """What a call printed, as a dict.  Raises Failed."""
    if out.strip():
        said = json.loads(out)
        if said.get("schema") != "klineage/error":
            return said
    else:
        lines = [line for line in err.splitlines() if line.startswith("{")]
        said = json.loads(lines[-1]) if lines else {"message": err.strip() or f"exit status {status}"}
    place = f"{said['where']}: " if said.get("where") else ""
    raise Failed(status, place + said.get("message", ""), said.get("hint", ""))


def run(name, *words, **options):
    """Runs one command to its end; the JSON that it prints.  Raises Failed."""
    done = subprocess.run(arguments(name, words, options), capture_output=True, text=True)
    said = answer(done.returncode, done.stdout, done.stderr)
    if name == "task_import" and not said["imported"]:
        raise Failed(done.returncode, not_imported(said["problems"]))
    return said


def not_imported(problems):
    """A refused problem is an answer of the program, and to who wants a task a failure."""
    more = f" (and {len(problems) - 1} more problems, none of which was imported)" if len(problems) > 1 else ""
    return f"not imported: {problems[0]['source']}: {problems[0]['error']}{more}"


def main():
    """The program itself, for who types klineage."""
    os.execv(path(), [path(), *sys.argv[1:]])


def command(name):
    """The command as a function of its positional words and options."""
    found = names()[name]

    def call(*words, **options):
        return run(name, *words, **options)
    call.__name__, call.__doc__ = name, f"{found['summary']}\n\n{found['text']}"
    return call
