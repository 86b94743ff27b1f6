#!/usr/bin/env python3
"""slurm.py - a Slurm cluster of its own for a test, on this host: a controller and several slurmd, ended with it.

Says `ready CONF`, where SLURM_CONF=CONF makes Slurm's programs talk to this cluster, and answers one line for each line of its
input; ends when its input does, so no test leaves a daemon behind:

    kill NODE         -> `killed`: the slurmd of NODE and the steps that it started, as by -9
    start NODE        -> `started`
    kill controller   -> `killed`; `start controller` brings it back with its state

Nodes are n1 ... nN, each with one processor and GPUS generic resources of type gpu (plain files: what is tested is how many
jobs run, not a device).  Without Slurm it says `missing: ...` and ends with status 77.
What Slurm itself waits for is short here: it misses a node after SlurmdTimeout, and what it requeues begins no earlier than the
credentials of the first time end (cred_expire, 120 s of a plain Slurm).
usage: tests/kit/slurm.py [NODES [GPUS]]            SPDX-License-Identifier: Apache-2.0
"""
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

CONF = """ClusterName=klineage
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
AuthInfo=cred_expire=15
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
SlurmctldPort={port}
SlurmctldTimeout=5
SlurmdTimeout=10
InactiveLimit=0
KillWait=20
MinJobAge=300
MaxArraySize=100001
PrologFlags=NoHold
SlurmctldPidFile={dir}/controller.pid
SlurmdPidFile={dir}/%n.pid
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/%n
SlurmctldLogFile={dir}/controller.log
SlurmdLogFile={dir}/%n.log
SlurmctldDebug=info
SlurmdDebug=info
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP
PartitionName=one Nodes=n1 MaxTime=INFINITE State=UP
"""


def free_ports(n):
    """A run of ports that nobody listens on now."""
    for _ in range(100):
        first = random.randrange(20000, 30000)
        sockets = []
        try:
            for port in range(first, first + n):
                s = socket.socket()
                sockets.append(s)
                s.bind(("127.0.0.1", port))
            return first
        except OSError:
            pass
        finally:
            for s in sockets:
                s.close()
    sys.exit("slurm.py: no free ports")


class Cluster:
    def __init__(self, nodes, gpus):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="klineage-slurm-", dir="/tmp"))
        self.conf, self.running = self.dir / "slurm.conf", {}
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        ports = free_ports(nodes + 1)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        gres = f" Gres=gpu:{gpus}" if gpus else ""
        lines = "\n".join(f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={ports + 1 + i} CPUs={max(1, gpus)} "
                          f"RealMemory=1000{gres} State=UNKNOWN" for i, name in enumerate(self.nodes))
        (self.dir / "state").mkdir()
        for name in self.nodes:
            (self.dir / name).mkdir()
        self.conf.write_text(CONF.format(host=socket.gethostname(), user=user, port=ports, dir=self.dir, nodes=lines,
                                         names=",".join(self.nodes)))
        for i in range(gpus):
            (self.dir / f"gpu{i}").touch()
        (self.dir / "gres.conf").write_text("".join(f"NodeName={name} Name=gpu File={self.dir}/gpu{i}\n" for name in self.nodes
                                                    for i in range(gpus)))
        (self.dir / "cgroup.conf").write_text("CgroupAutomount=no\n")
        self.env = dict(os.environ, SLURM_CONF=str(self.conf))

    def start(self, name):
        words = ["slurmctld", "-D", "-f", self.conf] if name == "controller" else ["slurmd", "-D", "-N", name, "-f", self.conf]
        self.running[name] = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL, start_new_session=True)
        return "started"

    def steps(self, name):
        """Processes that carry this node's name in their environment or words: its slurmstepd and what they run."""
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if f"SLURMD_NODENAME={name}\0".encode() in (entry / "environ").read_bytes() and \
                        str(self.conf).encode() in (entry / "environ").read_bytes():
                    yield int(entry.name)
            except OSError:
                pass

    def kill(self, name):
        daemon = self.running.pop(name, None)
        if daemon:
            daemon.kill()
            daemon.wait()
        stepds = subprocess.run(["pgrep", "-P", "1", "-x", "slurmstepd"], capture_output=True, text=True).stdout.split()
        for pid in [*(self.steps(name) if name != "controller" else []), *(int(p) for p in stepds if self.is_mine(int(p), name))]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return "killed"

    def is_mine(self, pid, name):
        try:
            words = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
            return f"SLURM_CONF={self.conf}".encode() in words and name != "controller"
        except OSError:
            return False

    def ready(self):
        until = time.monotonic() + 25
        while time.monotonic() < until:
            ran = subprocess.run(["sinfo", "-h", "-N", "-p", "all", "-o", "%T"], env=self.env, capture_output=True, text=True)
            if ran.stdout.split() and set(ran.stdout.split()) == {"idle"}:
                return f"ready {self.conf}"
            time.sleep(0.1)
        print((self.dir / "controller.log").read_text()[-3000:] if (self.dir / "controller.log").exists() else "no log", file=sys.stderr)
        for name in self.nodes:
            if (self.dir / f"{name}.log").exists():
                print((self.dir / f"{name}.log").read_text()[-1000:], file=sys.stderr)
        print(ran, file=sys.stderr); sys.exit("slurm.py: the cluster does not start")

    def end(self):
        subprocess.run(["scancel", "-p", "all"], env=self.env, capture_output=True, timeout=10, check=False)
        for name in list(self.running):
            self.kill(name)
        shutil.rmtree(self.dir, ignore_errors=True)


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if not all(shutil.which(name) for name in ("slurmctld", "slurmd", "sbatch", "scancel", "squeue")):
        print("missing: Slurm; on Debian: apt install slurm-wlm", flush=True)
        return 77
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the test; its end is what counts
    numbers = [int(word) for word in sys.argv[1:]]
    cluster = Cluster(numbers[0] if numbers else 4, numbers[1] if len(numbers) > 1 else 1)
    try:
        for name in ["controller", *cluster.nodes]:
            cluster.start(name)
        print(cluster.ready(), flush=True)
        for line in sys.stdin:
            verb, name = line.split()
            print({"kill": cluster.kill, "start": cluster.start}[verb](name), flush=True)
    finally:
        cluster.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
