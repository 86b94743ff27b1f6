#!/usr/bin/env python3
"""pages_flow.py - what agents and readers are given: every link leads somewhere, every page is listed, what is named exists.

usage: as flow.py.  What needs a package of PyPI names the `./run setup` that installs it, and is skipped without it.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import subprocess
import sys

import flow

sys.path.insert(0, str(flow.HERE.parent.parent / "tools"))
import links

CODE = re.compile(r"^```sh\n(.*?)^```", re.S | re.M)


def tool(p, setup, name):
    """A program that `./run setup SETUP` installs."""
    path = p.source / "build" / name
    if not path.exists():
        raise flow.Skip(f"{name} is not in build/: ./run setup {setup}")
    return path


def pages_of(p):
    return {page.relative_to(p.source).as_posix() for page in links.pages(p.source)}


# ---- links and lists -----------------------------------------------------------------------------------------------------


def test_every_link_leads_to_a_file(p):
    _, broken = links.reached(p.source, [*links.pages(p.source), p.source / "llms.txt"])
    assert not broken, "\n".join(broken)


def test_llms_txt_has_its_shape_and_lists_every_page(p):
    text = (p.source / "llms.txt").read_text()
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == "# klineage" and lines[1].startswith("> "), "a title, then one quoted paragraph: llmstxt.org"
    below = text[text.index("\n## "):].splitlines()
    assert all(re.match(r"## \w|- \[[^]]+\]\([^)]+\)(: \S|$)", line) for line in below if line), "below a heading only links"
    listed = links.of(p.source / "llms.txt")
    assert len(set(listed)) == len(listed), "a page is listed twice"
    assert not pages_of(p) - set(listed), f"llms.txt does not list {sorted(pages_of(p) - set(listed))}"


def test_the_site_is_strict_and_shows_every_page(p):
    tool(p, "site", "site-tools/bin/sphinx-build")
    made = subprocess.run(["./run", "site", p.folder / "site"], cwd=p.source, capture_output=True, text=True, timeout=250)
    assert made.returncode == 0 and (p.folder / "site/index.html").exists(), made
    for page in pages_of(p) - {"README.md"}:
        assert (p.folder / "site" / page).with_suffix(".html").exists(), page
    fetched = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]*', (p.folder / "site/docs/gate.html").read_text())
    assert not fetched, fetched


# ---- pages for agents ----------------------------------------------------------------------------------------------------


def commands(p, page):
    """Every command of its blocks for a shell, a line each, without comments."""
    blocks = CODE.findall((p.source / page).read_text())
    return [re.sub(r"\s+#.*", "", line).strip() for block in blocks for line in block.splitlines() if line.strip()]


def check_run_verbs(p, text, page):
    verbs = set(re.findall(r"^  (\w+)", subprocess.run([p.source / "run", "help"], capture_output=True, text=True).stdout, re.M))
    for verb in re.findall(r"\./run (\w+)", text):
        assert verb in verbs, f"{page}: ./run {verb}: no such verb"


def check_klineage(p, line, page):
    """A command line of klineage: the command and each option are there."""
    table = {c["words"]: {o["name"] for o in c["options"]} for c in json.loads(p.run("--generate", "commands").out)["commands"]}
    line = re.split(r"&&|\|", line)[0]
    words = line.split()[1:]
    name = next((n for n in (" ".join(words[:2]), words[0] if words else "") if n in table), None)
    if words and words[0] != "help":
        assert name, f"{page}: no such command: {line}"
    for option in re.findall(r"--([a-z][a-z-]*)", line) if name else ():
        assert option in table[name] | {"json", "help"}, f"{page}: {name} has no option --{option}"


def test_what_pages_for_agents_name_exists(p):
    for page in ("AGENTS.md", "skills/klineage/SKILL.md"):
        text = (p.source / page).read_text()
        check_run_verbs(p, text, page)
        for name in re.findall(r"`((?:src|docs|tests|tools|include|build/bin)/[\w./-]*\w)", text):
            assert (p.source / name).exists() or name.startswith("build/"), f"{page}: {name} is not there"
        for line in [*commands(p, page), *re.findall(r"`(klineage [^`]+)`", text)]:
            if line.startswith("klineage "):
                check_klineage(p, line, page)


def test_agents_md_names_tests_that_exist(p):
    listed = subprocess.run(["ctest", "--test-dir", p.source / "build", "-N"], capture_output=True, text=True)
    if listed.returncode:
        raise flow.Skip("the tests are not built in build/")
    names = re.findall(r"Test +#\d+: (\S+)", listed.stdout)
    for pattern in re.findall(r"ctest .*?-R '?([\w^|]+)", (p.source / "AGENTS.md").read_text()):
        for part in pattern.split("|"):
            assert any(re.search(part, name) for name in names), f"AGENTS.md: no test is called {part}"


def test_the_skill_knows_every_exit_status(p):
    text = (p.source / "skills/klineage/SKILL.md").read_text()
    explained = {int(n) for n in re.findall(r"^\| (\d+) \|", text, re.M)}
    page = p.run("help", "exit-codes").is_("ok").out
    said = {int(n) for n in re.findall(r"^ +(\d+)  ", page, re.M)}
    assert said and said == explained, f"klineage says {sorted(said)}, the skill {sorted(explained)}"
    assert len(text.splitlines()) <= 500, "a skill's page is read whole"


def test_skills_are_valid(p):
    check = tool(p, "agents", "agent/bin/agentskills")
    for skill in [p.source / "skills/klineage", *sorted((p.source / "library/admitted").iterdir())]:
        done = subprocess.run([check, "validate", skill], capture_output=True, text=True)
        assert done.returncode == 0, f"{skill.name}: {done.stdout}{done.stderr}"


def test_the_tutorials_kernel_is_wrong_and_then_right(p):
    """Its first block of C, then that with its diff applied."""
    text = (p.source / "docs/tutorial.md").read_text()
    kernel, diff = (re.search(rf"^```{kind}\n(.*?)^```", text, re.S | re.M)[1] for kind in ("c", "diff"))
    before, after = ("".join(line[1:] + "\n" for line in diff.splitlines() if line[0] in kept) for kept in (" -", " +"))
    assert kernel.count(before) == 1, "the diff is not one of this kernel"
    small = ("--workload", "rows=64,cols=128", "--quick", "--check-only", "--no-journal")
    p.gate(p.write("mine.c", kernel), *small, task="softmax").is_("wrong")
    p.gate(p.write("mine.c", kernel.replace(before, after)), *small, task="softmax").is_("ok")
    for line in [line for line in commands(p, "docs/tutorial.md") if line.startswith("klineage ")]:
        check_klineage(p, line, "docs/tutorial.md")


# ---- the notebook --------------------------------------------------------------------------------------------------------


def test_the_notebook_is_kept_without_results(p):
    cells = json.loads((p.source / "examples/klineage.ipynb").read_text())["cells"]
    assert all(not c.get("outputs") and c.get("execution_count") is None for c in cells if c["cell_type"] == "code")


@flow.alone
def test_the_notebook_runs(p):
    python = tool(p, "notebook", "notebook/bin/python3")
    text = ("import nbformat, nbclient, sys\n"
            "book = nbformat.read(sys.argv[1], 4)\n"
            "nbclient.NotebookClient(book, timeout=200, kernel_name='python3').execute()\n"
            "outs = [o for c in book.cells for o in c.get('outputs', ())]\n"
            "print(any('image/png' in o.get('data', {}) for o in outs), ''.join(o.get('text', '') for o in outs))")
    env = {**p.env, "PYTHONPATH": str(p.source / "python"), "KLINEAGE_PROGRAM": p.program, "IPYTHONDIR": str(p.folder),
           "JUPYTER_DATA_DIR": str(p.folder), "MPLCONFIGDIR": str(p.folder)}
    done = subprocess.run([python, "-c", text, p.source / "examples/klineage.ipynb"], env=env, cwd=p.folder, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0 and done.stdout.startswith("True "), done


def main():
    os.environ.pop("KLINEAGE_PYTHON", None)
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
