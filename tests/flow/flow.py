#!/usr/bin/env python3
"""flow.py - klineage as a new user meets it, mistakes first: exact exit status, and the words that must be said.

usage: flow.py --list                        names of the tests, one a line (CMake registers each); "alone" behind those that time
       flow.py KLINEAGE SOURCE_DIR NAME      run one; exit status 0 passed, 77 skipped (and why), else failed

A test is a function below that begins with `test_`; its argument is a Place: a fresh folder with a journal of its own.
Compiled oracles are shared between tests through one cache.  SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

import documents

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = HERE / "kernels"
EXIT = dict(ok=0, no=1, usage=2, no_compile=3, wrong=4, hang=5, cheat=6, no_device=7, no_isolation=8, crash=9, refused=10,
            pending=11, unstable=14, interrupted=130)


SMALL = ("--workload", "M=64,N=64,K=64")


class Skip(Exception):
    pass


class Answer:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __str__(self):
        return f"exit status {self.status}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"

    def is_(self, name, *words):
        """The exit status is that of `name`, and every word was said on one of the streams."""
        assert self.status == EXIT[name], f"expected {name} ({EXIT[name]}), got {self}"
        for word in words:
            assert word in self.out or word in self.err, f"'{word}' was not said: {self}"
        for never in ("Sanitizer", "klineage: bug:", "Segmentation"):
            assert never not in self.out + self.err, str(self)
        return self

    def json(self):
        return json.loads(self.out)


class Place:
    def __init__(self, program, source, folder):
        self.program, self.source, self.folder = str(program), pathlib.Path(source), pathlib.Path(folder)
        self.naive = str(self.source / "tasks/gemm/naive.c")
        cache = pathlib.Path(os.environ.get("KLINEAGE_FLOW_CACHE", self.folder / "cache"))
        drop = ("OPENBLAS_CORETYPE", "BLIS_ARCH_TYPE", "KLINEAGE_STORE", "NO_COLOR", "FORCE_COLOR")
        self.env = {k: v for k, v in os.environ.items() if k not in drop}
        self.env.update(KLINEAGE_TASKS=str(self.source / "tasks"), XDG_STATE_HOME=str(self.folder / "state"),
                        KLINEAGE_CACHE=str(cache), LC_ALL="C")

    def run(self, *words, env=None, limit=55, stdout=subprocess.PIPE, cwd=None, prefix=()):
        done = subprocess.run([*prefix, self.program, *map(str, words)], env={**self.env, **(env or {})}, timeout=limit,
                              stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, cwd=cwd or self.folder)
        answer = Answer(done.returncode, (done.stdout or b"").decode(errors="replace"), done.stderr.decode(errors="replace"))
        documents.check(self.source, words, answer)
        return answer

    def gate(self, kernel, *options, task="gemm", **how):
        """Without a shape of its own a kernel in C of gemm is judged at a small one."""
        small = task == "gemm" and str(kernel).endswith(".c") and "--workload" not in options
        return self.run("gate", task, kernel, *options, *(SMALL if small else ()), **how)

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def has(self, surface):
        return self.run("doctor", "--json").json()["surfaces"].get(surface) is not None


def alone(test):
    """It times kernels, so nothing else may run beside it."""
    test.alone = True
    return test


def timed(ask):
    """The verdict of `ask()`, which times and ought to pass.  On a machine busy with other things no time settles, and
    the gate says so: that is right, asked once more, and then no reason to call the program wrong."""
    for _ in range(3):
        answer = ask()
        if answer.status == EXIT["ok"] or "unstable" not in answer.out + answer.err:
            return answer.is_("ok").json()
    raise Skip("this machine is too busy: no time settled, three times over")


# ---- words -------------------------------------------------------------------------------------------------------------


def test_version_and_help(p):
    p.run("--version").is_("ok", "klineage 0.")
    p.run().is_("ok", "usage: klineage COMMAND")
    p.run("help").is_("ok", "first steps")
    p.run("help", "gate").is_("ok", "examples", "--require-assurance")
    p.run("gate", "--help").is_("ok", "examples")
    assert "examples" not in p.run("gate", "-h").is_("ok", "--check-only").out
    page = p.run("help", "exit-codes").is_("ok").out
    for name in EXIT:
        assert name in page, name
    for topic in ("environment", "kernels", "verdicts", "task"):
        p.run("help", topic).is_("ok")
    assert p.run("task", "--help").is_("ok", "klineage task show").out == p.run("help", "task").out
    p.run("nonsense", "--help").is_("usage", "nonsense")


def test_slips_are_answered_with_the_nearest_word(p):
    p.run("gaet", "x", "y").is_("usage", "unknown command 'gaet'", "did you mean klineage gate?")
    p.run("task", "lst").is_("usage", "did you mean klineage task list?")
    p.run("task").is_("usage", "'task' needs a subcommand")
    p.run("help", "exit-code").is_("usage", "did you mean klineage help exit-codes?")
    p.gate(p.naive, "--wrkload", "cpu").is_("usage", "did you mean --workload?")
    p.gate(p.naive, "--workload", "cpuu").is_("usage", "no workload 'cpuu'", "did you mean cpu?")
    p.gate(p.naive, "--workload", "paper").is_("usage", "is not for a cpu")
    p.gate(p.naive, "--baseline", "openblass").is_("usage", "did you mean openblas?")
    p.gate(p.naive, task="gemmm").is_("usage", "did you mean gemm?")


def test_a_compiler_that_gives_no_answer_is_not_missing(p):
    killed = pathlib.Path(p.write("cc", "#!/bin/sh\nkill -KILL $$\n"))
    killed.chmod(0o755)
    p.gate(p.naive, "--no-journal", env={"KLINEAGE_CC": str(killed)}).is_("usage", "overloaded", "uptime")
    p.gate(p.naive, "--no-journal", env={"KLINEAGE_CC": str(p.folder / "none")}).is_("no_device", "does not run as a C compiler")


def test_the_machine_is_asked_how_quiet_it_is(p):
    rows = {row["name"]: row for row in p.run("doctor", "--json").json()["rows"]}
    assert rows["quiet"]["state"] in ("ok", "weak") and "A/A noise" in rows["quiet"]["found"], rows
    p.gate(p.naive, "--check-only", "--no-journal", "--wait-quiet=1").is_("ok")
    p.gate(p.naive, "--wait-quiet=soon").is_("usage", "--wait-quiet takes a whole number, not 'soon'")
    p.run("task", "show", "gemm", "--wait-quiet").is_("usage", "is not an option")
    assert "--wait-quiet[=SECONDS]" in p.run("help", "walk").out


def test_the_machine_is_remembered(p):
    known = p.run("doctor", "--json").json()
    assert known["noise_record"] is None and known["noise"]["schema"] == "klineage/noise", known
    assert {"spread", "cv", "floor", "median", "host", "device", "cores", "load", "length"} <= set(known["noise"]), known
    p.gate(p.naive, "--check-only").is_("ok")  # there is a journal from here on
    kept = {**known["noise"], "pairs": 60, "left_out": 0, "floor": 0.5}  # settled, whatever this machine is like now
    with sqlite3.connect(p.folder / "state/klineage/klineage.db") as journal:
        journal.execute("INSERT INTO record VALUES ('noise', ?, ?, '', ?, ?)", ("a" * 64, kept["host"], json.dumps(kept), kept["created"]))
    answer = p.run("doctor", "--json").json()
    record, rows = answer["noise_record"], {row["name"]: row for row in answer["rows"]}
    assert record["n"] == record["fresh"] >= 1 and record["floor"] > 0 and record["since"] == kept["created"], record
    assert "spread" in rows["A/A record"]["found"] and "cv" in rows["A/A record"]["found"], rows
    if record["n"] == 1:
        p.gate(p.naive, "--check-only", "--seed", "7").is_("ok", "the A/A noise of this host is 50 % today (1 measurement)")


def test_a_shape_that_no_memory_holds_is_turned_away_at_once(p):
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 64 << 30:
        raise Skip("this machine could hold it")
    begin = time.monotonic()
    p.gate(p.naive, "--no-journal", "--workload", "M=50000,N=50000,K=16384").is_("usage", "this shape needs", "GiB of memory", "answers")
    assert time.monotonic() - begin < 20  # nothing was drawn


def test_wrong_usage(p):
    p.run("gate", "gemm").is_("usage", "needs TASK KERNEL", "usage: klineage gate")
    p.gate(p.naive, "more").is_("usage", "unexpected argument")
    p.gate(p.naive, "--seed", "-1").is_("usage", "whole number")
    p.gate(p.naive, "--seed", "0").is_("usage", "above 0")
    p.gate(p.naive, "--seed", "99999999999999999999").is_("usage", "whole number")
    p.gate(p.naive, "--require-assurance", "D").is_("usage", "one of A|B")
    p.gate(p.naive, "--workload").is_("usage", "needs a value")
    p.gate(p.naive, "--check-only=yes").is_("usage", "takes no value")
    p.gate(p.naive, "--param", "BM").is_("usage", "NAME=VALUE")
    p.gate(p.naive, "--param", "BM=3").is_("usage", "BM")
    p.gate(p.naive, "--wait").is_("usage", "--spool")
    p.run("doctor", "--quick").is_("usage", "not an option of 'doctor'")
    p.run("--color", "blue", "doctor").is_("usage", "auto|always|never")
    p.run("tune", "gemm", p.naive).is_("usage", "no param directive")


def test_errors_in_json(p):
    answer = p.run("gate", "gemm", "missing.c", "--json").is_("usage")
    lines = answer.err.strip().splitlines()
    assert len(lines) == 1 and not answer.out, str(answer)
    error = json.loads(lines[0])
    assert error["schema"] == "klineage/error" and error["exit_code"] == 2 and error["message"], error
    late = p.run("gate", "--nonsense", "gemm", "missing.c", "--json").is_("usage")
    assert json.loads(late.err)["error"] == "invalid", str(late)


def test_colours(p):
    broken = KERNELS / "gemm_syntax.c"
    assert "\033[" not in p.gate(broken).out
    assert "\033[" in p.gate(broken, "--color", "always").out
    assert "\033[" in p.gate(broken, "--color=always", env={"NO_COLOR": "1"}).out


# ---- pages -------------------------------------------------------------------------------------------------------------


def test_reference_page_is_current(p):
    made, kept = p.run("--generate", "reference").is_("ok").out, (p.source / "docs/reference.md").read_text()
    assert made == kept, "docs/reference.md has drifted: klineage --generate reference > docs/reference.md"


def test_schemas_and_tables_of_records_are_current(p):
    made, kept = p.run("--generate", "records").is_("ok").out, (p.source / "docs/formats/records.md").read_text()
    assert made == kept, "docs/formats/records.md has drifted: klineage --generate records > docs/formats/records.md"
    made, kept = p.run("--generate", "facts").is_("ok").out, (p.source / "docs/formats/facts.md").read_text()
    assert made == kept, "docs/formats/facts.md has drifted: klineage --generate facts > docs/formats/facts.md"
    for name in ("verdict", "lineage", "card-evidence", "step", "charge", "job", "noise", "noise-record", "probe", "probe-state", "facts"):
        made, kept = p.run("--generate", f"schema-{name}").is_("ok").out, (p.source / f"docs/schema/{name}.schema.json").read_text()
        assert made == kept, f"klineage --generate schema-{name} > docs/schema/{name}.schema.json"


def test_every_document_has_a_schema(p):
    """What the sources call klineage/NAME is described in docs/schema."""
    named, _ = documents.schemas(p.source)
    sources = [*(p.source / "src/command").glob("*.c"), *(p.source / "src/cli").glob("*.c"), p.source / "src/report/document.c"]
    for path in (source for source in sources if not source.name.endswith("_test.c")):
        for name in re.findall(r'"klineage/([a-z-]+)"', path.read_text()):
            assert name in named, f"{path.name} prints klineage/{name}, which docs/schema does not describe"


def test_every_command_prints_a_document(p):
    """Place.run holds each against its schema; what needs a model or minutes does that in another flow."""
    library, lineage = ("--library", p.source / "library"), p.source / "library/lineages/gemm-c.json"
    softmax = p.source / "tasks/softmax/naive.c"
    card = p.write("card.json", '{"skill_id": "gemm.tma_load", "intent": "load by TMA", "carrier": "code"}')
    (p.folder / "spool").mkdir()
    (p.folder / "mine").mkdir()
    here = [("gate", "gemm", p.naive, "--check-only"), ("verdict", "list"), ("verdict", "show", "KEY"), ("doctor",), ("export", p.naive),
            ("task", "list"), ("task", "show", "gemm"), ("task", "new", "sums", "--out", "sums"), ("task", "check", HERE / "loop/running"), ("kernel", "show", p.naive, "--task", "gemm"),
            ("kernel", "facts", p.naive, "--task", "gemm"), ("kernel", "compile", p.naive, "--task", "gemm"),
            ("kernel", "extract", f"{p.source}/tests/data/triton/softmax.py:softmax"),
            ("kernel", "source", p.naive), ("kernel", "diff", p.naive, softmax), ("lineage", "import", lineage),
            ("lineage", "list"), ("lineage", "show", "gemm-c"), ("lineage", "export", "gemm-c", "--out", "x.json"),
            ("library", "list", *library), ("library", "check", *library), ("library", "coverage", *library), ("library", "judge", *library),
            ("card", "show", "pack-b-c", *library), ("retrieve", "gemm", p.naive, *library), ("cost",), ("run", "list"),
            ("probe", "--dry-run", *library), ("probe", "export", "--library", "mine"), ("probe", "show", *library), ("library", "import", card, "--library", "mine"), ("spool", "spool"), ("top", "spool", "--once")]
    elsewhere = ("tune", "walk", "lift", "admit", "optimize", "experiment", "report", "run show", "run record", "lineage rederive",
                 "lineage judge", "probe import", "probe recorded", "task import", "corpus", "dataset export", "init", "capture", "serve")
    for words in here:
        key = p.run("verdict", "list", "--json").json()["verdicts"][0]["key"] if "KEY" in words else ""
        answer = p.run(*[key if word == "KEY" else word for word in words], "--json", limit=200)
        assert answer.status in (EXIT["ok"], EXIT["no"]) and answer.json()["version"] == 1, answer
    commands = re.findall(r"^## klineage (.*)$", (p.source / "docs/reference.md").read_text(), re.M)
    known = [*elsewhere, "help", *(" ".join(map(str, words)) for words in here)]
    for command in commands:
        assert any(f"{command} ".startswith(f"{name} ") or f"{name} ".startswith(f"{command} ") for name in known), command


def test_completion_scripts_and_man_page_parse(p):
    for shell in ("bash", "zsh", "fish"):
        script = p.write(f"klineage.{shell}", p.run("--generate", f"complete-{shell}").is_("ok").out)
        if shutil.which(shell):
            subprocess.run([shell, "-n", script], check=True)
    page = p.write("klineage.1", p.run("--generate", "man").is_("ok", ".TH KLINEAGE 1").out)
    if shutil.which("groff"):
        said = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], check=True, capture_output=True).stderr
        assert not said, said


def test_bash_completion_completes(p):
    script = p.write("klineage.bash", p.run("--generate", "complete-bash").out)

    def complete(*words):
        body = f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _klineage; echo "${{COMPREPLY[*]}}"'
        env = {**p.env, "PATH": f"{pathlib.Path(p.program).parent}:{p.env['PATH']}"}
        return subprocess.run(["bash", "-c", body, "-", *words], env=env, capture_output=True, text=True, check=True).stdout.split()

    assert complete("klineage", "ga") == ["gate"]
    assert complete("klineage", "task", "") == ["check", "import", "list", "new", "show"]
    assert complete("klineage", "gate", "--chec") == ["--check-only"]
    assert complete("klineage", "gate", "--color", "n") == ["never"]
    assert complete("klineage", "gate", "soft") == ["softmax"]


# ---- input that cannot be judged ----------------------------------------------------------------------------------------


def test_missing_file(p):
    p.gate("nowhere.c").is_("usage", "nowhere.c", "no such file")
    p.gate(p.folder).is_("usage", "this is a folder")
    p.gate(p.write("kernel.txt", "text")).is_("usage", "known extensions: .c")
    p.run("gate", "nowhere/definition.json", p.naive).is_("usage", "nowhere")
    p.run("kernel", "show", "nowhere.cu").is_("usage", "no such file")
    p.run("verdict", "show", "0000").is_("usage", "klineage verdict list")
    p.run("verdict", "show", "no key").is_("usage")
    p.run("spool", "nowhere").is_("usage", "no such folder")


def test_unreadable_file(p):
    path = p.write("secret.c", "//! launch f args()\n")
    os.chmod(path, 0)
    if os.access(path, os.R_OK):
        raise Skip("root reads every file")
    p.gate(path).is_("usage", "cannot be read")


def test_empty_file(p):
    p.gate(p.write("empty.c", "")).is_("refused", "launch")


def test_binary_garbage(p):
    p.gate(p.write("noise.c", bytes(range(256)) * 64)).is_("refused")
    p.gate(p.write("zeros.cu", bytes(5000))).is_("refused")
    p.gate(p.write("program.c", pathlib.Path(sys.executable).resolve().read_bytes()[:200000])).is_("refused")


def test_huge_source(p):
    path = p.folder / "huge.c"
    with open(path, "wb") as f:
        f.truncate(100 << 20)
    p.gate(path).is_("refused", "huge.c")


def test_malformed_directives_are_shown_with_a_caret(p):
    p.gate(KERNELS / "gemm_malformed.c").is_("refused", "gemm_malformed.c:3:", "KK", "^")
    p.gate(p.write("dtype.c", "//! buffer t: f33[M]\n//! launch gemm args(t)\n")).is_("refused", "f33", "^")
    p.gate(p.write("path.c", "//! flags -I/etc\n//! launch gemm args(x)\n")).is_("refused", "-I/etc")
    verdict = p.gate(KERNELS / "gemm_malformed.c", "--json").is_("refused").json()
    assert verdict["outcome"] == "refused" and verdict["stage"] == "parse", verdict


def test_kernel_of_another_task(p):
    p.gate(p.naive, task="softmax").is_("refused", "weight")


def test_unknown_dtype_in_a_task(p):
    folder = p.folder / "mytask"
    shutil.copytree(p.source / "tasks/gemm", folder)
    definition = folder / "definition.json"
    definition.write_text(definition.read_text().replace('"dtype": "bfloat16"', '"dtype": "float33"', 1))
    p.run("task", "show", folder).is_("usage", "float33", "definition.json")
    definition.write_text('{"name": ')
    p.run("gate", folder, p.naive).is_("usage", "definition.json:1")
    definition.write_text("[]")
    p.run("gate", folder, p.naive).is_("usage", "definition.json")


def test_impossible_shapes(p):
    p.gate(p.naive, "--workload", "M=0").is_("usage", "M=0", "^")
    p.gate(p.naive, "--workload", "M=-5").is_("usage")
    p.gate(p.naive, "--workload", "M=2147483648").is_("usage")
    p.gate(p.naive, "--workload", "M=99999999999999999999").is_("usage")
    p.gate(p.naive, "--workload", "Q=3").is_("usage", "Q")
    p.gate(p.naive, "--workload", "M=").is_("usage")
    p.gate(p.naive, "--workload", "M=4294967296,N=1,K=1", "--check-only").is_("refused")


def test_a_terabyte_of_scratch(p):
    p.gate(KERNELS / "gemm_scratch.c").is_("refused", "huge")


def test_too_much_shared_memory(p):
    if p.has("cuda"):
        p.gate(KERNELS / "gemm_shared.cu").is_("refused", "shared memory")
    else:
        p.gate(KERNELS / "gemm_shared.cu").is_("no_device")
    if p.has("opencl"):
        local = "//! launch gemm global(1) local(1) args(x, local(300*1024*1024*1024))\n__kernel void gemm(__global const kl_t_x *x, __local float *s) {}\n"
        p.gate(p.write("local.cl", local)).is_("refused")


# ---- a machine that lacks something --------------------------------------------------------------------------------------


def test_no_gpu(p):
    if p.has("cuda"):
        raise Skip("this machine has a GPU")
    p.gate(p.source / "tasks/gemm/naive.cu").is_("no_device", "hint:")
    answer = p.gate(p.source / "tasks/gemm/naive.cu", "--json").is_("no_device")
    assert json.loads(answer.err)["exit_code"] == 7


def test_no_compiler(p):
    p.gate(p.naive, env={"PATH": "/nonexistent"}).is_("no_device", "gcc", "hint:")
    p.gate(p.naive, env={"KLINEAGE_CC": "nowhere/cc"}).is_("no_device", "KLINEAGE_CC is 'nowhere/cc'")
    p.run("doctor", env={"PATH": "/nonexistent"}).is_("no", "apt-get install gcc")


def test_doctor(p):
    answer = p.run("doctor", "--json").is_("ok").json()
    assert answer["schema"] == "klineage/doctor" and answer["works"] is True and answer["surfaces"]["c"], answer
    for row in answer["rows"]:
        assert row["state"] == "ok" or row["mend"], row
    crippled = p.run("doctor", env={"OPENBLAS_CORETYPE": "Prescott"}).is_("ok", "unset OPENBLAS_CORETYPE")
    assert "Prescott" in crippled.out


def test_without_namespaces_the_verdict_says_so(p):
    bounded = ["setpriv", "--bounding-set=-sys_admin"]
    if os.geteuid() != 0 or subprocess.run([*bounded, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("nobody here can take namespaces away")
    said = "no namespaces on this machine"
    less = p.gate(p.naive, "--check-only", "--no-journal", "--json", prefix=bounded).is_("ok").json()
    assert any(said in line for line in less["degradations"]) and "+ns" not in less["platform"]["isolation"], less
    usual = p.gate(p.naive, "--check-only", "--json", "--no-journal").is_("ok").json()
    assert any(said in line for line in usual["degradations"]) == ("+ns" not in usual["platform"]["isolation"]), usual


def on_small_disk(p, kilobytes):
    """A folder that holds so little, and a prefix that runs a program where it is mounted."""
    folder = p.folder / "small"
    folder.mkdir()
    mount = f'mount -t tmpfs -o size={kilobytes}k tmpfs "{folder}" && exec "$@"'
    prefix = ["unshare", "-m" if os.geteuid() == 0 else "-rm", "sh", "-c", mount, "-"]
    try:
        subprocess.run([*prefix, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        raise Skip("no small disk can be mounted here") from None
    return folder, prefix


def test_full_disk_under_the_journal(p):
    folder, prefix = on_small_disk(p, 16)
    answer = p.gate(KERNELS / "gemm_syntax.c", "--store", folder / "journal.db", prefix=prefix)
    answer.is_("usage", "journal.db")
    assert "No space" in answer.err or "full" in answer.err, str(answer)


def test_full_disk_under_the_cache(p):
    folder, prefix = on_small_disk(p, 4)
    answer = p.gate(KERNELS / "gemm_wrong.c", "--check-only", prefix=prefix, env={"KLINEAGE_CACHE": str(folder)})
    assert answer.status in (EXIT["usage"], EXIT["wrong"]), str(answer)
    if answer.status == EXIT["usage"]:
        assert "No space" in answer.err or "disk" in answer.err, str(answer)


def test_a_cache_that_cannot_be_made(p):
    (p.folder / "file").write_text("")
    p.gate(p.naive, "--check-only", env={"KLINEAGE_CACHE": str(p.folder / "file/cache")}).is_("usage", "file/cache", "KLINEAGE_CACHE=")


def test_full_stdout(p):
    with open("/dev/full", "w") as full:
        p.run("doctor", stdout=full).is_("usage", "cannot write")


def test_store_of_another_program(p):
    path = p.write("other.db", b"not a database at all" * 100)
    p.gate(KERNELS / "gemm_syntax.c", "--store", path).is_("usage", "other.db", "hint:")
    assert pathlib.Path(path).read_bytes().startswith(b"not a database")


# ---- verdicts -------------------------------------------------------------------------------------------------------------


def test_no_compile(p):
    p.gate(KERNELS / "gemm_syntax.c").is_("no_compile", "no_compile", "nothing_of_that_name")
    verdict = p.gate(KERNELS / "gemm_syntax.c", "--json", "--no-journal").is_("no_compile").json()
    assert verdict["stage"] == "compile" and str(p.folder) not in verdict["detail"], verdict


def test_wrong(p):
    verdict = p.gate(KERNELS / "gemm_wrong.c", "--json").is_("wrong").json()
    assert verdict["time"] is None and verdict["checks"][-1]["ok"] is False, verdict


def test_crash(p):
    p.gate(KERNELS / "gemm_crash.c").is_("crash", "SIGSEGV")


def test_hang(p):
    verdict = p.gate(KERNELS / "gemm_endless.c", "--json", limit=110).is_("hang").json()
    assert verdict["outcome"] == "hang", verdict


@alone
def test_cheat(p):
    shape = "M=64,N=64,K=64"  # small, so that a timed batch has many calls
    for _ in range(3):  # on a busy machine batches may shrink to the one call that is honest
        answer = p.gate(KERNELS / "gemm_caches.c", "--workload", shape, "--json", limit=110)
        if answer.status != EXIT["unstable"]:
            break
    verdict = answer.is_("cheat").json()
    assert verdict["stage"] in ("profile", "after"), verdict


@alone
def test_pass_and_journal(p):
    shape = ("--workload", "M=96,N=96,K=96", "--quick")
    first = timed(lambda: p.gate(p.naive, *shape, "--json"))
    assert first["outcome"] == "pass" and first["journaled"] is False and first["time"]["median_ns"] > 0, first
    assert all(check["ok"] for check in first["checks"])
    if first["time"]["vs"]:
        again = p.gate(p.naive, *shape, "--json").is_("ok").json()
        assert again["journaled"] is True and again["receipt"] == first["receipt"], again
        p.gate(p.naive, *shape).is_("ok", "judged before")
    rows = p.run("verdict", "list", "--json").is_("ok").json()["verdicts"]
    assert rows and rows[0]["outcome"] == "pass" and rows[0]["task"] == "gemm", rows
    shown = p.run("verdict", "show", rows[0]["key"][:12]).is_("ok", "checks:", "receipt")
    assert first["kernel"]["hash"] in shown.out
    p.run("verdict", "show", "zzzz").is_("usage")


@alone
def test_against_another_kernel(p):
    shape = ("--workload", "M=96,N=96,K=96", "--quick")
    shutil.copy(p.naive, p.folder / "other.c")
    verdict = timed(lambda: p.gate(p.naive, *shape, "--against", "other.c", "--json"))
    assert len(verdict["time"]["vs"]) == 1 and verdict["time"]["vs"][0]["baseline"] == "other.c", verdict
    p.gate(p.naive, "--against", "nowhere.c").is_("usage", "no such file")
    p.gate(p.naive, "--against", p.source / "tasks/gemm/naive.cu").is_("usage", "surface cuda")
    p.gate(p.naive, "--against", p.naive, "--baseline", "all").is_("usage", "either --against or --baseline")
    p.gate(p.naive, *shape, "--against", KERNELS / "gemm_wrong.c").is_("usage", "fails the gate")


def test_check_only_is_not_timed(p):
    verdict = p.gate(p.naive, "--check-only", "--json", "--no-journal").is_("ok").json()
    assert verdict["time"] is None, verdict
    assert p.run("verdict", "list", "--json").json()["verdicts"] == []


def test_the_candidate_is_judged_from_any_folder(p):
    (p.folder / "elsewhere").mkdir()
    shutil.copy(p.naive, p.folder / "elsewhere" / "mine.c")
    p.gate("mine.c", "--check-only", cwd=p.folder / "elsewhere").is_("ok")
    p.gate("elsewhere/mine.c", "--check-only").is_("ok", "judged before")


def test_the_reference_is_never_too_inexact(p):
    """A running sum's error is a walk, ten times as large on one draw as on another: the budget goes by the inputs that are judged."""
    task = p.folder / "running"
    shutil.copytree(HERE / "loop/running", task)
    (task / "definition.json").write_text((task / "definition.json").read_text().replace('"budget": 8', '"budget": 1'))
    for seed in range(1, 9):
        p.gate(str(task / "naive.c"), "--check-only", "--no-journal", "--seed", str(seed), task=str(task)).is_("ok")


@alone
def test_params_and_tune(p):
    kernel, shape = KERNELS / "gemm_tunable.c", (*SMALL, "--quick")
    p.run("kernel", "show", kernel, "--param", "BM=32").is_("ok", "BM = 32 of 8 32")
    p.gate(kernel, "--param", "CM=32").is_("usage", "CM")
    p.gate(kernel, "--param", "BM=32", "--param", "BK=16", "--check-only").is_("ok")
    said = []

    def tuned():
        said.append(p.run("tune", "gemm", kernel, *shape, "--max-trials", "2", "--json", limit=90))
        return said[-1]
    found = timed(tuned)
    for word in ("variant 1 of at most 2: BM=", "variant 2 of at most 2: BM="):
        assert word in said[-1].err or len(found["trials"]) < 2, str(said[-1])
    assert found["schema"] == "klineage/tuning" and found["grid"] == 4 and 1 <= len(found["trials"]) <= 2, found
    assert "BM=" in found["best"] and found["verdict"]["outcome"] in ("pass", "unstable"), found
    newest = p.run("verdict", "list", "--json").json()["verdicts"][0]
    assert p.run("verdict", "show", newest["key"], "--json").json()["receipt"] == found["verdict"]["receipt"], newest
    pinned = p.run("tune", "gemm", kernel, *shape, "--param", "BM=16", "--json", limit=110)
    assert pinned.json()["grid"] == 2 and "BM=16" in pinned.json()["best"], str(pinned)
    assert pinned.status == (EXIT["ok"] if pinned.json()["verdict"]["outcome"] == "pass" else EXIT["unstable"]), str(pinned)


def test_naive_error_is_kept_between_processes(p):
    """At a shape that is large enough to be its own average: the same error makes the same budget, until its file is damaged."""
    def budgets():
        verdict = p.run("gate", "softmax", p.source / "tasks/softmax/naive.c", "--workload", "rows=1100,cols=1024", "--check-only",
                        "--no-journal", "--json", env={"KLINEAGE_CACHE": str(p.folder / "own")}).is_("ok").json()
        return [c["budget"] for c in verdict["checks"] if c["scale"] == 1 and c["workload"] != "tiny" and c["workload"] != "hidden"]
    first, kept = budgets(), sorted((p.folder / "own/known").glob("naive-error-*"))
    assert first and kept and budgets() == first
    texts = [f.read_bytes() for f in kept]
    for f, text in zip(kept, texts):
        f.write_bytes(b"x" + text[1:])
    assert budgets() != first and [f.read_bytes() for f in kept] != texts


def test_an_unstable_verdict_is_followed_by_a_better_one(p):
    kept = p.gate(p.naive, "--check-only", "--json").is_("ok").json()
    key = p.run("verdict", "list", "--json").json()["verdicts"][0]["key"]
    shown = p.run("verdict", "show", key, "--json").is_("ok").json()
    unstable = {**shown, "outcome": "unstable", "stage": "profile", "why": "the machine was busy"}
    with sqlite3.connect(p.folder / "state/klineage/klineage.db") as journal:
        journal.execute("UPDATE verdict SET json = ?, packed = NULL", (json.dumps(unstable),))
    journal.close()
    again = p.gate(p.naive, "--check-only", "--json").is_("ok").json()
    assert again["journaled"] is False and again["receipt"] != kept["receipt"], again
    third = p.gate(p.naive, "--check-only", "--json").is_("ok").json()
    assert third["journaled"] is True and third["receipt"] == again["receipt"], third
    assert p.run("verdict", "show", key, "--json").is_("ok").json()["outcome"] == "unstable"


def test_a_task_without_a_native_oracle(p):
    foreign = p.source / "tests/data/foreign"
    kernel = p.write("f.c", "//! launch f args(hidden_states, weight, output, batch_size)\nvoid f(void *h, void *w, void *o, int n) {}\n")
    definition = foreign / "flashinfer/definitions/rmsnorm/rmsnorm_h4096.json"
    p.run("task", "show", definition).is_("ok", "hidden_size  = 4096")
    p.run("task", "show", foreign / "solexecbench/split_heads_gain").is_("ok", "head_dim")
    no_python = p.gate(kernel, task=definition, env={"KLINEAGE_PYTHON": "/nonexistent/python"})
    no_python.is_("no_device", "oracle cannot run here", "hint:", "torch")
    p.run("task", "check", foreign / "solexecbench/split_heads_gain").is_("no_device", "no shape")


def test_kernel_show_and_diff(p):
    shown = p.run("kernel", "show", p.naive, "--task", "gemm", "--json").is_("ok").json()
    assert shown["surface"] == "c" and shown["plan"]["launches"][0]["entry"] == "gemm", shown
    rung = p.source / "experts/gemm/c/7-transpose"
    made = p.run("kernel", "source", f"{rung}.c").is_("ok", "other:transpose_in_registers").out
    assert p.run("kernel", "source", f"{rung}.diff").is_("ok").out == made
    p.run("kernel", "diff", f"{rung}.c", p.source / "experts/gemm/c/8-expert.c").is_("no", "prefetch")
    p.run("kernel", "diff", p.naive, p.naive).is_("ok")
    p.run("kernel", "diff", p.naive, KERNELS / "gemm_wrong.c").is_("no", "k + 1 < K")
    p.run("kernel", "show", KERNELS / "gemm_malformed.c", "--task", "gemm").is_("usage", "KK", "^")
    p.run("kernel", "show", p.naive, "--workload", "cpu").is_("usage", "--task")


def test_tasks(p):
    names = [task["name"] for task in p.run("task", "list", "--json").is_("ok").json()["tasks"]]
    assert "gemm" in names and "softmax" in names, names
    for name in names:
        p.run("task", "show", name).is_("ok", "workloads")


def test_spool(p):
    job = ("--check-only", "--spool", "spool", "--json")
    waiting = p.gate(KERNELS / "gemm_wrong.c", *job).is_("pending")
    assert json.loads(waiting.err)["exit_code"] == 11 and not waiting.out
    p.gate(KERNELS / "gemm_wrong.c", *job).is_("pending")
    queue = p.run("spool", "spool", "--json").is_("ok").json()
    assert queue["counts"] == {"todo": 1, "taken": 0, "done": 0}, queue
    p.run("spool", "spool", "--work").is_("ok", "1 judged")
    verdict = p.gate(KERNELS / "gemm_wrong.c", *job).is_("wrong").json()
    assert verdict["outcome"] == "wrong"
    p.run("spool", "spool").is_("ok", "done", "wrong")
    rival = p.write("rival.c", pathlib.Path(p.naive).read_text() + "/* the same */\n")
    against = (*job, "--against", rival)
    p.gate(p.naive, *job).is_("pending")
    p.gate(p.naive, *against).is_("pending")
    assert p.run("spool", "spool", "--json").is_("ok").json()["counts"]["todo"] == 2
    p.run("spool", "spool", "--work").is_("ok", "2 judged")
    p.gate(p.naive, *against).is_("ok")
    assert len(p.run("verdict", "list", "--json").json()["verdicts"]) == 2


def test_top(p):
    p.run("top", "--once").is_("ok", "no runs")
    p.run("top", "nowhere", "--once").is_("usage", "no such spool folder")
    p.gate(KERNELS / "gemm_wrong.c", "--check-only", "--spool", "spool").is_("pending")
    p.run("top", "spool", "--once").is_("ok", "1 wait, 0 taken, 0 done")
    p.run("spool", "spool", "--work").is_("ok", "1 judged")
    told = p.run("top", "spool", "--json").is_("ok").json()["spools"][0]
    assert (told["waiting"], told["done"], told["of_last_minute"], told["devices"][0]["verdicts"]) == (0, 1, 1, 1), told
    (p.folder / "spool/taken" / f"{'a' * 64}@far@17@slurm-9").mkdir()
    p.run("top", "spool", "--once").is_("ok", "far, process 17, Slurm's 9, seen")
    running = subprocess.Popen([p.program, "optimize", "softmax", "--model", "mutate:1", "--spool", "other"], env=p.env, cwd=p.folder,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not (runs := p.run("top", "--json").is_("ok").json()["runs"]) or not runs[0]["tracks"]:
            assert time.monotonic() < until and running.poll() is None
            time.sleep(0.1)
        assert runs[0]["command"] == "optimize" and runs[0]["tracks"][0]["owner"] == f"process {running.pid}", runs
    finally:
        running.kill()
        running.wait()
    assert not p.run("top", "--json").is_("ok").json()["runs"][0]["tracks"]


def test_top_on_a_screen_is_shown_anew_until_it_is_interrupted(p):
    ours, theirs = pty.openpty()
    top = subprocess.Popen([p.program, "top"], env=p.env, cwd=p.folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen, until = b"", time.monotonic() + 30
    while seen.count(b"\033[2J") < 2:
        assert time.monotonic() < until, seen
        if select.select([ours], [], [], 1)[0]:
            seen += os.read(ours, 4096)
    top.send_signal(signal.SIGINT)
    assert top.wait(10) == EXIT["ok"]
    os.close(ours)


# ---- ends that nobody planned ----------------------------------------------------------------------------------------------


def children(pid):
    """Every process below `pid`."""
    table = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "stat").read_text()
        except OSError:
            continue
        table.setdefault(int(text.rsplit(")", 1)[1].split()[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        below = table.get(todo.pop(), [])
        found += below
        todo += below
    return found


def start_endless(p):
    """A gate that waits for a kernel which never returns, and the processes below it."""
    gate = subprocess.Popen([p.program, "gate", "gemm", str(KERNELS / "gemm_endless.c")], env=p.env, cwd=p.folder,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    below, until = [], time.monotonic() + 60
    while time.monotonic() < until and gate.poll() is None:
        below = children(gate.pid)
        busy = [pid for pid in below if cpu_seconds(pid) > 0.5 and is_worker(pid)]
        if busy:
            return gate, below, busy
        time.sleep(0.1)
    gate.kill()
    raise AssertionError("the kernel never ran")


def cpu_seconds(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_worker(pid):
    try:
        return "klineage-worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False


def finish(gate, limit):
    try:
        out, err = gate.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        gate.kill()
        gate.communicate()
        raise AssertionError(f"the gate did not end within {limit} s") from None
    return Answer(gate.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def none_left(pids):
    until = time.monotonic() + 30
    while time.monotonic() < until:
        left = [pid for pid in pids if is_worker(pid)]
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(f"processes were left behind: {left}")


def test_interrupt(p):
    gate, below, _ = start_endless(p)
    os.kill(gate.pid, signal.SIGINT)
    finish(gate, 40).is_("interrupted", "interrupted")
    none_left(below)
    assert p.run("verdict", "list", "--json").json()["verdicts"] == []


def test_killed_runner(p):
    gate, below, busy = start_endless(p)
    for pid in busy:
        os.kill(pid, signal.SIGKILL)
    answer = finish(gate, 50)
    assert answer.status in (EXIT["crash"], EXIT["hang"]), str(answer)
    answer.is_("crash" if answer.status == EXIT["crash"] else "hang")
    none_left(below)


def test_killed_gate_leaves_nothing_behind(p):
    gate, below, _ = start_endless(p)
    os.kill(gate.pid, signal.SIGKILL)
    finish(gate, 10)
    none_left(below)


# ---- running ------------------------------------------------------------------------------------------------------------------


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(name + " alone" * hasattr(test, "alone") for name, test in tests().items()))
        return 0
    program, source, name = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="klineage-flow-") as folder:
        try:
            tests()[name](Place(pathlib.Path(program).resolve(), pathlib.Path(source).resolve(), folder))
        except Skip as why:
            print(f"SKIPPED: {why}")
            return 77
        except (AssertionError, subprocess.SubprocessError) as why:
            print(f"FAILED: {name}: {why}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
