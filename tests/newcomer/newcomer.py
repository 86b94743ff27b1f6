#!/usr/bin/env python3
"""newcomer.py - a how-to page, or a section of README.md, followed to the letter: its code blocks, in order, in a copy of the tree.

usage: newcomer.py --list SOURCE                pages that can be followed, one a line (CMake registers each)
       newcomer.py FOLDER SOURCE PAGE           follow docs/how-to/PAGE.md in FOLDER; exit status 0 when every block worked
       newcomer.py FOLDER SOURCE way_N          the Nth of the ways in of README.md

What the first line of a fenced block says is what is done with it:

    ```c FILE       FILE, below the root, holds this text (any language but the next two)
    ```diff FILE    the lines that begin with ' ' or '-' are in FILE, once, and become those with ' ' or '+'
    ```sh           typed at the root, with build/bin on PATH; every command has to succeed

A command of README.md that times may say that no time settled on this machine, or that nothing was faster, by the exit
status that `klineage help exit-codes` has for it (ANSWERS): every other status is a failure.  A model there is replaced by
one that costs nothing (FREE).  What sets up Triton or PyTorch is followed where $KLINEAGE_PYTHON has it, and skipped (77)
elsewhere.
Other blocks are there to be read, and so are pages of which no block names a file.  Pages share one build folder, and
nothing else: each begins with the tree as it is.  SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ANSWERS = {"gate": {14}, "optimize": {1, 14}, "walk": {1, 14}, "experiment": {14}}
# 14: no time settled; 1: nothing was faster, or no model was left to go on to the naive kernel
NO_GPU = 7    # of a kernel for a GPU, on a machine without
FREE = {"walk": "builtin"}    # of a command; all others take
ANY_OTHER = "mutate:1"
ASKED = "anthropic:claude-opus-4-6"
FENCE = re.compile(r"^```(\S*)[ ]*(\S*)\n(.*?)^```$", re.M | re.S)
BUILD = "build"


def blocks(page):
    """Of a page: (language, file, text) of what is to be done."""
    found = [(language, file, text) for language, file, text in FENCE.findall(page.read_text())]
    return [b for b in found if b[0] == "sh" or b[1]]


def pages(source):
    """Those that add a file to the tree."""
    return [p for p in sorted((source / "docs/how-to").glob("*.md")) if any(file for _, file, _ in blocks(p))]


# ---- the tree ----------------------------------------------------------------------------------------------------------


def files_of(source):
    """What git knows of, or would; without git what is no build folder."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "-co", "--exclude-standard"], capture_output=True, check=False)
    if listed.returncode == 0:
        names = [pathlib.Path(os.fsdecode(n)) for n in listed.stdout.split(b"\0") if n]
    else:
        names = [p.relative_to(source) for p in source.rglob("*")]
    return {n for n in names if (source / n).is_file() and not n.parts[0].startswith(BUILD)}


def copy(source, tree):
    """The tree becomes the source's; what is the same stays untouched, so that only what a page changed is built again."""
    tree.mkdir(parents=True, exist_ok=True)
    wanted = files_of(source)
    for path in [p for p in tree.rglob("*") if p.is_file() or p.is_symlink()]:
        name = path.relative_to(tree)
        if name.parts[0] != BUILD and name not in wanted:
            path.unlink()
    for folder in sorted((p for p in tree.rglob("*") if p.is_dir() and p.relative_to(tree).parts[0] != BUILD), reverse=True):
        if not any(folder.iterdir()):    # a page that was followed before made it
            folder.rmdir()
    for name in wanted:
        data, to = (source / name).read_bytes(), tree / name
        if to.exists() and to.read_bytes() == data:
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(data)
        to.chmod((source / name).stat().st_mode)


# ---- what a block asks for -----------------------------------------------------------------------------------------------


def change(path, text):
    """One diff block.  Its context has to be there, once."""
    lines = [line if line else " " for line in text.splitlines()]
    before = "".join(line[1:] + "\n" for line in lines if line[0] in " -")
    after = "".join(line[1:] + "\n" for line in lines if line[0] in " +")
    content = path.read_text()
    assert content.count(before) == 1, f"these lines are {content.count(before)} times in {path.name}:\n{before}"
    path.write_text(content.replace(before, after))


def say(tree, commands):
    """As somebody types them."""
    env = {**os.environ, "PATH": f"{tree}/{BUILD}/bin:{os.environ['PATH']}"}
    env.update(XDG_STATE_HOME=str(tree.parent / "state"), CCACHE_BASEDIR=str(tree))
    env.pop("KLINEAGE_TASKS", None)
    done = subprocess.run(["sh", "-eux", "-c", commands], cwd=tree, env=env, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, f"exit status {done.returncode}"


def way(source, number):
    """The blocks of one way in: README.md's third-level sections below the heading."""
    text = (source / "README.md").read_text()
    ways = text[text.index("\n## Three ways in\n"):].split("\n## ")[1].split("\n### ")[1:]
    found = FENCE.findall(ways[number - 1])
    return [text for language, _, text in found if language == "sh"]


def has_gpu():
    return pathlib.Path("/dev/nvidiactl").exists()


def allowed(line):
    """Exit statuses of a command that are an answer."""
    words = line.split()
    if words[:1] != ["klineage"]:
        return {0}
    on_gpu = words[1] == "gate" and words[3].endswith((".py", ".cu")) and not has_gpu()
    return {0} | ANSWERS.get(words[1], set()) | ({NO_GPU} if on_gpu else set())


def typed(text):
    """A block as a shell's script: each command, then whether its status is one of its own."""
    for line in text.splitlines():
        command = line.split("  #")[0].rstrip()
        if ASKED in command:
            command = command.replace(ASKED, FREE.get(command.split()[1], ANY_OTHER))
        if not command.startswith("klineage "):
            yield command
            continue
        yield f"status=0; {command} || status=$?"
        yield "case $status in " + "|".join(map(str, sorted(allowed(command)))) + f") ;; *) echo \"exit status $status of: {command}\"; exit 1 ;; esac"


def enter(tree, number):
    """A way in, with the Python that this machine's tests have; what of it was skipped."""
    python, skipped = pathlib.Path(os.environ.get("KLINEAGE_PYTHON", "")), []
    (tree / BUILD / "python").unlink(missing_ok=True)
    if python.parent.name == "bin":
        (tree / BUILD / "python").symlink_to(python.parent.parent)
    shutil.rmtree(tree.parent / "state", ignore_errors=True)    # nothing is answered from a journal
    for text in way(tree, number):
        print(f"== way {number}\n{text}", flush=True)
        absent = [name for name in re.findall(r"^\./run setup (\w+)", text, re.M) if not has_module(name)]
        if absent:
            skipped.append(f"no Python with {absent[0]} in KLINEAGE_PYTHON")
        else:
            say(tree, "\n".join(typed(text)))
    return "; ".join(skipped)


def follow(tree, page):
    for language, file, text in blocks(page):
        print(f"== {language} {file}", flush=True)
        if language == "sh":
            say(tree, text)
        elif language == "diff":
            change(tree / file, text)
        else:
            (tree / file).parent.mkdir(parents=True, exist_ok=True)
            (tree / file).write_text(text)


def has_module(name):
    python = os.environ.get("KLINEAGE_PYTHON")
    look = f"import importlib.metadata as m; m.version('{name}')"
    return bool(python) and subprocess.run([python, "-c", look], capture_output=True).returncode == 0


def main_way(folder, source, number):
    tree = folder / "tree"
    copy(source, tree)
    try:
        if not (tree / BUILD / "build.ninja").exists():
            say(tree, "cmake --preset default")
        say(tree, f"cmake --build {BUILD} --target klineage klineage-worker")
        skipped = enter(tree, number)
    except AssertionError as why:
        print(f"FAILED: way {number} of README.md: {why}")
        return 1
    if skipped:
        print(f"SKIPPED: {skipped}")
        return 77
    return 0


def main():
    if sys.argv[1] == "--list":
        print("\n".join([p.stem for p in pages(pathlib.Path(sys.argv[2]))] + ["way_1", "way_2", "way_3"]))
        return 0
    folder, source, name = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    if name.startswith("way_"):
        return main_way(folder, source, int(name[4:]))
    asked = re.search(r"^\./run setup (\w+)$", (source / f"docs/how-to/{name}.md").read_text(), re.M)
    if asked and not has_module(asked[1]):
        print(f"SKIPPED: no Python with {asked[1]} in KLINEAGE_PYTHON")
        return 77
    tree = folder / "tree"
    copy(source, tree)
    if not (tree / BUILD / "build.ninja").exists():
        say(tree, "cmake --preset default")
    try:
        follow(tree, tree / "docs/how-to" / f"{name}.md")
    except AssertionError as why:
        print(f"FAILED: docs/how-to/{name}.md: {why}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
