#!/usr/bin/env python3
"""postgresql.py - a PostgreSQL server of its own for a test, ended with it.

Says `ready` and answers one line for each line of its input; ends when its input does, so no test leaves a server behind:

    database NAME     -> the URL of a fresh database
    sql NAME TEXT     -> what psql says, as one line
    file NAME FILE    -> the same of the statements in FILE
    kill              -> the server is killed as by -9, and comes back with `start`
    start [BYTES]     -> `ready`; no file of the server may grow beyond BYTES (a full disk)

Where PostgreSQL is not installed it says `missing: ...` and ends with status 77.
usage: tests/kit/postgresql.py            SPDX-License-Identifier: Apache-2.0
"""
import glob
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

USER = "klineage"
SETTINGS = ("listen_addresses=", "fsync=off", "max_connections=200", "shared_buffers=16MB", "max_wal_size=8MB", "min_wal_size=2MB",
            "log_min_messages=fatal")


def program(name):
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}")) + [p for p in [shutil.which(name)] if p]
    return found[-1] if found else None


class Server:
    """Not as root, which PostgreSQL refuses."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="klineage-pg-", dir="/tmp"))
        self.process = None
        self.as_user = {}
        if os.getuid() == 0:
            self.as_user = {"user": 65534, "group": 65534, "extra_groups": []}
            os.chown(self.dir, 65534, 65534)
        subprocess.run([program("initdb"), "-D", self.dir / "data", "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync",
                        "--wal-segsize=1"], check=True, stdout=subprocess.DEVNULL, cwd=self.dir, **self.as_user)

    def start(self, most=0):
        def limit():
            if most:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        words = [program("postgres"), "-D", self.dir / "data", "-k", self.dir]
        for setting in SETTINGS:
            words += ["-c", setting]
        self.process = subprocess.Popen(words, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=sys.stderr, preexec_fn=limit,
                                        start_new_session=True, **self.as_user)
        until = time.monotonic() + 60
        while self.psql("postgres", "SELECT 1") != "1":
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit("postgresql.py: the server does not start")
            time.sleep(0.05)
        return "ready"

    def psql(self, database, text):
        ran = subprocess.run([program("psql"), "-h", self.dir, "-U", USER, "-d", database, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                              "-c", text], capture_output=True, text=True)
        return " ".join((ran.stdout + (ran.stderr if ran.returncode else "")).split())

    def database(self, name):
        self.psql("postgres", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        said = self.psql("postgres", f"CREATE DATABASE {name}")
        return said or f"postgresql://{USER}@/{name}?host={self.dir}"

    def kill(self):
        """The postmaster and all that it forked, each of them as by -9."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in [self.process.pid, *map(int, children)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        for lock in self.dir.glob(".s.PGSQL*"):
            lock.unlink()
        return "killed"

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


def main():
    if not all(program(name) for name in ("initdb", "postgres", "psql")):
        print("missing: PostgreSQL; on Debian: apt install postgresql", flush=True)
        return 77
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the test; its end is what counts
    server = Server()
    try:
        print(server.start(), flush=True)
        for line in sys.stdin:
            verb, *rest = line.strip().split(" ", 1)
            words = rest[0].split(" ", 1) if rest else []
            answer = {"database": lambda: server.database(words[0]), "sql": lambda: server.psql(*words),
                      "file": lambda: server.psql(words[0], pathlib.Path(words[1]).read_text()), "kill": server.kill,
                      "start": lambda: server.start(int(words[0]) if words else 0)}[verb]()
            print(answer, flush=True)
    finally:
        server.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
