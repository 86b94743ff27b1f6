#!/usr/bin/env python3
"""action_flow.py - the GitHub action's script on a pull request made here: which kernels it judges, what it writes, how it ends.

usage: as flow.py.  No GitHub: a git repository, and the environment that a runner gives.  SPDX-License-Identifier: Apache-2.0
"""
import importlib.util
import re
import shutil
import subprocess
import sys
import textwrap

import flow
from loop_place import CHEAT, FAST, NAIVE, TASK

SCRIPT = flow.HERE.parent.parent / ".github/actions/gate/gate.py"
KERNELS = "kernels/**/*.c running\nkernels/*.cu gemm\n# nothing else\n"
WRONG = FAST.replace("sum += x[i];", "sum -= x[i];")
ONLY_CHECKED = ("--check-only", "--no-journal")


def git(p, *words):
    who = {"GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@t", "HOME": str(p.folder)}
    subprocess.run(["git", *words], cwd=p.folder / "repo", env={**p.env, **who}, check=True, capture_output=True)


def repository(p, **files):
    """With one commit of these kernels, and `main` there."""
    if not shutil.which("git"):
        raise flow.Skip("no git")
    (p.folder / "repo/kernels").mkdir(parents=True)
    shutil.copytree(TASK, p.folder / "repo/running")
    git(p, "init", "-q", "-b", "main")
    change(p, **files)
    git(p, "checkout", "-q", "-b", "change")


def change(p, **files):
    """Writes kernels/NAME.c (`cu_NAME`: kernels/NAME.cu) and commits."""
    for name, text in files.items():
        to = f"{name[3:]}.cu" if name.startswith("cu_") else f"{name}.c"
        (p.folder / "repo/kernels" / to).write_text(text)
    commit(p)


def commit(p):
    git(p, "add", "-A")
    git(p, "commit", "-q", "--allow-empty", "-m", "kernels")


def action(p, *gate, kernels=KERNELS, options=(), limit=250):
    """(exit status, summary, what the runner reads)."""
    summary = p.folder / "summary.md"
    summary.write_text("")
    words = [sys.executable, "-B", SCRIPT, "--base", "main", "--kernels", kernels, "--klineage", p.program, *options, "--", *gate]
    done = subprocess.run(words, cwd=p.folder / "repo", env={**p.env, "GITHUB_STEP_SUMMARY": str(summary)}, capture_output=True, text=True,
                          timeout=limit)
    assert not done.stderr, done.stderr
    return done.returncode, summary.read_text(), done.stdout


def rows(summary):
    """The cells of each kernel's row, by the kernel's name."""
    lines = [[re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), c.strip()) for c in re.split(r"(?<!\\)\|", line)[1:-1]]
             for line in summary.splitlines() if line.startswith("| ")]
    return {line[1]: line for line in lines[2:]}


def test_what_changed_is_judged_and_nothing_else(p):
    repository(p, untouched=WRONG, fixed=WRONG, gone=WRONG)
    assert action(p)[:2] == (0, "## klineage gate\n\nNo kernel changed.\n\n")
    (p.folder / "repo/kernels/gone.c").unlink()
    (p.folder / "repo/elsewhere.c").write_text(WRONG)
    (p.folder / "repo/kernels/link.c").symlink_to("/etc/hostname")
    change(p, fixed=FAST, new=FAST)
    status, summary, said = action(p, *ONLY_CHECKED)
    assert status == 0 and not said, (summary, said)
    assert {name: row[3] for name, row in rows(summary).items()} == {"kernels/fixed.c": "pass", "kernels/new.c": "pass"}, summary


def test_a_wrong_kernel_and_a_cheat_fail_and_a_missing_device_warns(p):
    repository(p, fast=FAST)
    kernels = dict(wrong=WRONG, broken="int x\n", cu_device=(p.source / "tasks/gemm/naive.cu").read_text())
    change(p, **({k: v for k, v in kernels.items() if k != "cu_device"} if p.has("cuda") else kernels))
    status, summary, said = action(p, *ONLY_CHECKED)
    found = rows(summary)
    assert status == 1 and found["kernels/wrong.c"][0] == "✗" and found["kernels/wrong.c"][3] == "wrong", summary
    assert found["kernels/broken.c"][3] == "refused" and "::error file=kernels/broken.c,title=klineage gate::refused: " in said, said
    if not p.has("cuda"):
        assert found["kernels/device.cu"][0] == "⚠" and "::warning file=kernels/device.cu," in said, (summary, said)


@flow.alone
def test_slower_than_before_fails_and_faster_passes(p):
    repository(p, up=NAIVE, down=FAST)
    change(p, up=FAST, down=NAIVE, cheat=CHEAT)
    status, summary, said = action(p, "--quick", options=("--against-base", "--min-ratio", "0.9"))
    found = rows(summary)
    if any(row[3] == "unstable" for row in found.values()):
        raise flow.Skip("this machine is too busy: no time settled")
    assert status == 1 and found["kernels/up.c"][0] == "" and found["kernels/down.c"][0] == "✗", summary
    assert "slower than 0.9x of " in found["kernels/down.c"][6] and "::error file=kernels/down.c," in said, (summary, said)
    assert found["kernels/cheat.c"][3] == "cheat", summary


def test_names_are_a_strangers(p):
    repository(p, fast=FAST)
    name = "a|b`<img src=x>\n::set-output name=x::y%0A,c.c"
    (p.folder / "repo/kernels" / name).write_text(WRONG)
    (p.folder / "repo/kernels/--version.c").write_text(WRONG)
    commit(p)
    status, summary, said = action(p, *ONLY_CHECKED)
    assert status == 1 and len(rows(summary)) == 2 and "<img" not in summary, summary
    lines = said.splitlines()
    assert len(lines) == 2 and all(line.startswith("::error file=kernels/") for line in lines), said
    assert "%0A::set-output name=x::y%250A".replace("::", "%3A%3A") in said, said


def test_mistakes(p):
    repository(p, fast=FAST)
    change(p, fast=NAIVE)
    assert "GLOB TASK" in action(p, kernels="kernels/*.c")[2] and action(p, kernels="")[0] == 2
    status, _, said = action(p, kernels="kernels/*.c gemn")
    assert status == 1 and "no such task" in said, said
    missing = [sys.executable, "-B", SCRIPT, "--base", "nowhere", "--kernels", KERNELS]
    done = subprocess.run(missing, cwd=p.folder / "repo", env=p.env, capture_output=True, text=True)
    assert done.returncode == 2 and "fetch-depth" in done.stdout, done


def test_the_step_of_the_action_passes_its_inputs_on(p):
    """The last `run:` of action.yml, as a runner would start it."""
    repository(p, fast=FAST)
    change(p, fast=NAIVE, wrong=WRONG)
    text = (SCRIPT.parent / "action.yml").read_text()
    script, inputs = textwrap.dedent(text.rpartition("run: |\n")[2]), re.findall(r"^        ([A-Z_]+): \$\{\{ inputs\.", text, re.M)
    env = dict(BASE="main", KERNELS=KERNELS, MIN_RATIO="", AGAINST_BASE="true", OPTIONS="--check-only --no-journal", PROGRAM=p.program)
    assert sorted(inputs) == sorted(env), inputs
    summary = p.folder / "summary.md"
    env.update(GITHUB_ACTION_PATH=str(SCRIPT.parent), GITHUB_STEP_SUMMARY=str(summary))
    done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script], cwd=p.folder / "repo", env={**p.env, **env},
                          capture_output=True, text=True, timeout=250)
    assert done.returncode == 1 and "::error file=kernels/wrong.c" in done.stdout, done
    assert {name: row[3] for name, row in rows(summary.read_text()).items()} == {"kernels/fast.c": "pass", "kernels/wrong.c": "wrong"}


def test_what_an_answer_means(p):
    spec = importlib.util.spec_from_file_location("action_gate", SCRIPT)
    gate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gate)

    def timed(ratio, low, high):
        return {"outcome": "pass", "why": "", "time": {"vs": [dict(ratio=ratio, low=low, high=high, baseline="b")]}}
    for said, least, severity in ((timed(.5, .4, .6), None, "good"), (timed(.5, .4, .6), .9, "bad"), (timed(.85, .8, .95), .9, "warning"),
                                  (timed(.95, .8, 1.1), .9, "good"), ({"outcome": "pass", "why": "", "time": None}, .9, "warning"),
                                  ({"outcome": "unstable", "why": "busy"}, .9, "warning"), ({"outcome": "hang", "why": "x"}, None, "bad")):
        assert gate.judge(0, said, least)[0] == severity, (said, least)
    fits = [glob for glob in ("k/*.c", "k/**/*.c", "**/x.c", "k/?.c", "k/x.c", "x.c", "*.c") if gate.glob_pattern(glob).match("k/x.c")]
    assert fits == ["k/*.c", "k/**/*.c", "**/x.c", "k/?.c", "k/x.c"], fits


def main():
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
