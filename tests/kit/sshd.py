#!/usr/bin/env python3
"""sshd.py - an SSH server of its own for a test, on the loopback, with a key that only the test has; ended with it.

Says `ready ssh -F CONFIG`, what reaches it as the host `localhost`, and ends when its input does.  The klineage-worker of the test's
build is on the PATH of its sessions ($KLINEAGE_SSH_WORKER of the test's, where it is set, wins).  Without OpenSSH's server, or rsync,
it says `missing: ...` and ends with status 77.
usage: tests/kit/sshd.py            SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SERVER = """ListenAddress 127.0.0.1
Port {port}
HostKey {dir}/host
AuthorizedKeysFile {dir}/user.pub
PidFile {dir}/pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
MaxStartups 100
MaxSessions 100
SetEnv PATH={path}
"""
CLIENT = """Host localhost
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {dir}/user
  IdentitiesOnly yes
  UserKnownHostsFile {dir}/known
  StrictHostKeyChecking accept-new
"""


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if not all(shutil.which(name) for name in ("sshd", "ssh", "ssh-keygen", "rsync")):
        print("missing: an SSH server or rsync; on Debian: apt install openssh-server rsync", flush=True)
        return 77
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the test; its end is what counts
    folder = pathlib.Path(tempfile.mkdtemp(prefix="klineage-sshd-", dir="/tmp"))
    if os.getuid() == 0:
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    words = dict(dir=folder, port=port, user=pwd.getpwuid(os.getuid()).pw_name, path=os.environ["PATH"])
    (folder / "server").write_text(SERVER.format(**words))
    (folder / "client").write_text(CLIENT.format(**words))
    server = subprocess.Popen([shutil.which("sshd"), "-D", "-e", "-f", folder / "server"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=open(folder / "log", "w"))
    try:
        until = time.monotonic() + 20
        while subprocess.run(["ssh", "-F", folder / "client", "localhost", "true"], capture_output=True).returncode:
            if server.poll() is not None or time.monotonic() > until:
                print(f"missing: sshd does not start here: {(folder / 'log').read_text()[-300:]!r}", flush=True)
                return 77
            time.sleep(0.1)
        print(f"ready ssh -F {folder}/client", flush=True)
        sys.stdin.read()
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
