#!/usr/bin/env python3
"""cluster_flow.py - gates on a Slurm cluster, behind ssh, and a journal in PostgreSQL, as they are typed.

usage: as flow.py.  Each test starts what it needs (tests/kit) and is skipped where that is not installed.  SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import inspect
import os
import pathlib
import signal
import subprocess
import sys
import time

import flow
from flow import EXIT, KERNELS, Skip

KIT = pathlib.Path(__file__).resolve().parent.parent / "kit"
CHECK = ("--check-only", "--quick", "--workload", "tiny")


class Helper:
    """A script of tests/kit: a line for each line."""

    def __init__(self, name, *words):
        self.process = subprocess.Popen([sys.executable, "-B", KIT / name, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        said = self.process.stdout.readline().strip()
        if not said.startswith("ready"):
            raise Skip(said)
        self.ready = said[6:]

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()


@contextlib.contextmanager
def helper(name, *words):
    h = Helper(name, *words)
    try:
        yield h
    finally:
        h.process.stdin.close()
        h.process.wait(60)


def eventually(what, seconds=90):
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, f"nothing came of it: {inspect.getsource(what).strip()}"
        time.sleep(0.2)
    return found


# ---- Slurm -----------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def cluster(p, *words):
    with helper("slurm.py", *words) as slurm:
        p.env["SLURM_CONF"] = slurm.ready
        yield slurm


def slurm_says(p, *words):
    return subprocess.run(words, env=p.env, capture_output=True, text=True).stdout


def test_slurm_judges(p):
    with cluster(p, "2", "1"):
        spec = ("--executor", f"slurm:{p.folder}/shared")
        p.gate(KERNELS / "gemm_wrong.c", *CHECK, *spec).is_("pending", "Slurm")
        p.gate(KERNELS / "gemm_wrong.c", *CHECK, *spec, "--wait").is_("wrong")
        p.gate(p.naive, *CHECK, *spec, "--spool", "x").is_("usage", "either --spool or --executor")
        p.run("top", "shared", "--once").is_("ok", "shared/cpu", "1 done")


def test_slurm_gpus_are_asked_for(p):
    """There is none behind the cluster's: what is seen is that Slurm was asked for one, and that the node's no is an error and no verdict."""
    with cluster(p, "1", "1"):
        kernel = p.source / "tasks/gemm/naive.cu"
        told = p.gate(kernel, "--check-only", "--workload", "tiny", "--executor", f"slurm:{p.folder}/shared", "--wait", limit=200)
        assert (p.folder / "shared/gpu/done").exists() and not (p.folder / "shared/cpu/todo").exists(), told
        assert "TresPerNode=gres:gpu:1" in slurm_says(p, "scontrol", "show", "job"), slurm_says(p, "scontrol", "show", "job")


def test_slurm_interrupted_takes_its_jobs_back(p):
    with cluster(p, "1", "1"):
        running = subprocess.Popen([p.program, "gate", "gemm", str(KERNELS / "gemm_endless.c"), "--executor", f"slurm:{p.folder}/shared", "--wait"],
                                   env=p.env, cwd=p.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        eventually(lambda: list((p.folder / "shared/cpu").glob("taken/*@slurm-*")))
        running.send_signal(signal.SIGINT)
        assert running.wait(60) == 130, running.stderr.read()
        eventually(lambda: not slurm_says(p, "squeue", "-h").strip())
        eventually(lambda: list((p.folder / "shared/cpu").glob("todo/*")))


def test_slurm_a_node_that_fails_is_replaced(p):
    with cluster(p, "2", "1") as slurm:
        spec = ("--executor", f"slurm:{p.folder}/shared", "--wait")
        running = subprocess.Popen([p.program, "gate", "gemm", str(p.naive), *CHECK, "--workload", "cpu", *spec], env=p.env, cwd=p.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        taken = eventually(lambda: list((p.folder / "shared/cpu").glob("taken/*@slurm-*")))[0]
        node = slurm_says(p, "squeue", "-h", "-o", "%N").split()[0]
        assert slurm.ask(f"kill {node}") == "killed" and taken
        eventually(lambda: slurm_says(p, "sinfo", "-h", "-N", "-n", node, "-p", "all", "-o", "%T").startswith("down"))
        assert running.wait(250) in (EXIT["ok"], EXIT["unstable"]), running.stdout.read()


def test_slurm_that_is_not_there_is_said(p):
    p.env["SLURM_CONF"] = p.write("none.conf", "ClusterName=x\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\n")
    p.env["PATH"] = str(p.folder)
    p.gate(KERNELS / "gemm_wrong.c", *CHECK, "--executor", f"slurm:{p.folder}/shared").is_("usage", "sbatch")


# ---- ssh -------------------------------------------------------------------------------------------------------------------


def test_ssh_judges(p):
    with helper("sshd.py") as sshd:
        p.env.update(KLINEAGE_SSH=sshd.ready, KLINEAGE_SSH_WORKER=str(pathlib.Path(p.program).parent / "klineage-worker"),
                     KLINEAGE_CACHE=str(p.folder / "cache"))
        spec = ("--executor", f"ssh:localhost:{p.folder}/there", "--wait")
        p.gate(KERNELS / "gemm_wrong.c", *CHECK, *spec, limit=250).is_("wrong")
        assert list((p.folder / "there/done").iterdir()), "it was not judged there"
        eventually(lambda: not [w for w in pathlib.Path("/proc").glob("[0-9]*/cmdline") if f"{p.folder}/there".encode() in read(w)])


def test_ssh_a_host_that_cannot_be_asked_is_named(p):
    p.env.update(KLINEAGE_SSH="ssh -F /dev/null", KLINEAGE_CACHE=str(p.folder / "cache"))
    p.gate(KERNELS / "gemm_wrong.c", *CHECK, "--executor", "ssh:no-such-host.invalid", "--wait", limit=120).is_("usage", "no-such-host.invalid")
    p.gate(KERNELS / "gemm_wrong.c", *CHECK, "--executor", "ssh:-oProxyCommand=x").is_("usage", "executor ssh needs a host")


def test_ssh_a_worker_of_another_version_is_refused(p):
    with helper("sshd.py") as sshd:
        other = p.write("klineage-worker", "#!/bin/sh\necho klineage-worker 0.0.9\n")
        os.chmod(other, 0o755)
        p.env.update(KLINEAGE_SSH=sshd.ready, KLINEAGE_SSH_WORKER=str(p.folder / "klineage-worker"), KLINEAGE_CACHE=str(p.folder / "cache"))
        p.gate(KERNELS / "gemm_wrong.c", *CHECK, "--executor", f"ssh:localhost:{p.folder}/there", "--wait", limit=120).is_("usage", "0.0.9")
        assert not list((p.folder / "there").glob("todo/*"))


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


# ---- PostgreSQL ------------------------------------------------------------------------------------------------------------


def test_postgresql_keeps_the_journal(p):
    with helper("postgresql.py") as server:
        url = server.ask("database journal")
        p.gate(KERNELS / "gemm_wrong.c", "--check-only", "--store", url).is_("wrong")
        p.env["KLINEAGE_STORE"] = url
        p.run("verdict", "list").is_("ok", "wrong")
        p.gate(KERNELS / "gemm_wrong.c", "--check-only").is_("wrong", "judged before")
        p.run("top", "--once").is_("ok", "no runs")
        p.run("doctor", limit=200)
        assert server.ask("kill") == "killed"
        p.run("verdict", "list").is_("usage", "cannot connect", "psql")
        server.ask("start")
        p.run("verdict", "list").is_("ok", "wrong")
        p.env["KLINEAGE_LIBPQ"] = "/nowhere/libpq.so"
        p.run("verdict", "list").is_("no_device", "libpq5")


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
