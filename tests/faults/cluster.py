"""cluster.py - an experiment over several processes and hosts, all of whom are killed as by -9 while it runs: controller, workers, database, Slurm.

The model is a program that charges for every call, in a file that nothing takes back.  The command is typed again until it ends; then every payment
has its row in the ledger, no answered call was asked again, no cap was passed, every verdict that was used is there, and typed once more it asks
nobody.  SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import world
from world import EXIT

import loop_place  # noqa: E402  (world.py puts its folder on the path)
from cluster_flow import helper  # noqa: E402

BUDGET = 0.05
EXPERIMENT = f"""schema: klineage/experiment
version: 1
budget: {BUDGET}
quick: true
trials: 3
max-steps: 4
policies: [generate, bestofn]
workloads: [running]
"""
PROVIDER = """import hashlib, os, random, sys, time
prompt = sys.stdin.read()
os.write(os.open({paid!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), b"paid\\n")
time.sleep(random.uniform(0.1, 0.6))
replies = {replies!r}
print(replies[hashlib.sha256(prompt.encode()).digest()[0] % len(replies)])
"""
LONGEST_S = 400


class Scene:
    """The experiment's folder, what is typed there, and who may be killed."""

    def __init__(self, p, store, executor, env=None):
        self.p, self.at, self.paid = p, p.folder / "cluster", p.folder / "paid"
        self.at.mkdir()
        for task in world.loop_flow.two_kinds(self.at).iterdir():
            task.rename(self.at / task.name)
        (self.at / "x.yaml").write_text(EXPERIMENT)
        (self.at / "provider.py").write_text(PROVIDER.format(paid=str(self.paid), replies=[loop_place.GOOD, loop_place.WRONG, loop_place.NOTHING]))
        self.env = {**p.env, "KLINEAGE_TASKS": str(self.at), **(env or {})}
        self.words = [str(p.program), "experiment", "x.yaml", "--jobs", "6", "--model", f"command:{sys.executable} {self.at}/provider.py",
                      "--priced-as", "claude-haiku-5-5", "--store", store, "--executor", executor, "--quiet"]
        self.kills = self.caught = 0  # caught: killed between payment and answer

    def start(self):
        return subprocess.Popen(self.words, cwd=self.at, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=open(self.at / "said.txt", "w"), start_new_session=True)

    def said(self):
        return (self.at / "said.txt").read_text(errors="replace")[-1500:]

    def payments(self):
        return self.paid.read_bytes().count(b"\n") if self.paid.exists() else 0


def wait_for_payment(scene, seconds):
    """The provider has charged and not answered yet."""
    before, until = scene.payments(), time.monotonic() + seconds
    while time.monotonic() < until:
        if scene.payments() > before:
            scene.caught += 1
            return
        time.sleep(0.01)


def until_it_ends(scene, chance, victims, rounds):
    """Kill somebody at a moment, type the command again where it ended; at last let it be."""
    controller = scene.start()
    for n in range(rounds):
        time.sleep(chance.uniform(0.1, 1.0))
        victim = chance.choice(["controller", *victims]) if n else "controller"
        if victim == "controller":
            wait_for_payment(scene, 1 if n else LONGEST_S)  # gates of others on this machine come first
            os.killpg(controller.pid, signal.SIGKILL)
            controller.kill()
        else:
            victims[victim]()
        scene.kills += 1
        if controller.poll() is not None or victim == "controller":
            controller.wait(60)
            controller = scene.start()
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        status = controller.wait(LONGEST_S)
        if status == EXIT["ok"]:
            return
        assert "bug" not in scene.said(), scene.said()
        controller = scene.start()
    controller.kill()
    raise AssertionError(f"it does not come to its end: {scene.said()}")


def books_balance(scene, query):
    """`query`: rows of a statement, each a list of texts."""
    charges = query("SELECT effect, state, reserved_microusd, settled_microusd, track FROM charge")
    answered, spent = {}, {}
    for effect, state, reserved, settled, track in charges:
        answered[effect] = answered.get(effect, 0) + (state == "settled")
        spent[track] = spent.get(track, 0) + {"settled": int(settled), "released": 0}.get(state, int(reserved))
    assert all(n <= 1 for n in answered.values()), "a call was answered twice"
    assert scene.payments() <= len(charges), f"{scene.payments()} payments, {len(charges)} rows in the ledger"
    assert len(answered) and all(n == 1 for n in answered.values()), "a call has no answer, and the experiment ended"
    assert all(amount <= BUDGET * 1e6 for amount in spent.values()), f"a cap was passed: {spent}"
    gone = query("SELECT count(*) FROM effect LEFT JOIN verdict ON effect.answer = verdict.key WHERE kind = 'judge' AND verdict.key IS NULL")
    assert gone == [["0"]], f"{gone} verdicts were used and are gone"
    tracks = query("SELECT track, count(*) FROM step GROUP BY track")
    assert len(tracks) == 6, f"tracks are missing: {tracks}"
    lost = sum(state == "lost" for _, state, *_ in charges)
    assert scene.caught, "no kill came between a payment and its answer"
    assert lost, "a payment without an answer is not in the ledger as lost"
    print(f"{scene.kills} kills, {scene.caught} of them behind a payment; {scene.payments()} payments, {len(charges)} charges, {lost} of them lost, in {len(tracks)} tracks")


def asks_nobody(scene):
    before = scene.payments()
    again = scene.start()
    assert again.wait(LONGEST_S) == EXIT["ok"], scene.said()
    assert scene.payments() == before, "typed once more, it paid"


def with_a_database(p):
    """Controller, two workers and the database; the workers share a spool."""
    with helper("postgresql.py") as database:
        url = database.ask("database journal")
        scene, workers, chance = Scene(p, url, "spool:" + str(p.folder / "spool")), {}, random.Random(11)
        (p.folder / "spool").mkdir()

        def start_worker(name):
            workers[name] = subprocess.Popen([pathlib.Path(p.program).parent / "klineage-worker", "--spool", p.folder / "spool", "--stay", "3600"],
                                             env=scene.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def kill_worker(name):
            workers[name].kill()
            workers[name].wait(60)
            start_worker(name)

        def kill_database():
            assert database.ask("kill") == "killed"
            assert database.ask("start") == "ready"

        def query(sql):
            said = database.ask(f"sql journal SET search_path = klineage; SELECT coalesce(json_agg(r), '[]') FROM ({sql}) r")
            return [[str(v) for v in row.values()] for row in json.loads(said)]

        try:
            for name in ("one", "two"):
                start_worker(name)
            until_it_ends(scene, chance, {"one": lambda: kill_worker("one"), "two": lambda: kill_worker("two"), "database": kill_database}, 14)
            books_balance(scene, query)
            asks_nobody(scene)
        finally:
            for worker in workers.values():
                worker.kill()


def processes_of(job):
    """Those whose environment names this job of Slurm."""
    mark, found = f"SLURM_JOB_ID={job}".encode(), []
    for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in environ.read_bytes().split(b"\0"):
                found.append(environ.parent.name)
        except OSError:  # ended, or another user's
            pass
    return found


def jobs_in_queue(scene):
    """Pairs of number and state; an element of an array has a number of its own (%A), the one that its processes are told."""
    said = subprocess.run(["squeue", "-h", "-r", "-o", "%A %T"], env=scene.env, capture_output=True, text=True, check=True).stdout
    return [tuple(line.split()) for line in said.splitlines()]


def with_slurm(p):
    """Controller, nodes with what runs on them, and Slurm's own controller."""
    with helper("slurm.py", "3", "1") as slurm:
        store = str(p.folder / "s.db")
        scene, chance = Scene(p, store, "slurm:" + str(p.folder / "shared"), {"SLURM_CONF": slurm.ready}), random.Random(12)

        def kill(name):
            assert slurm.ask(f"kill {name}") == "killed"
            assert slurm.ask(f"start {name}") == "started"

        def query(sql):
            return [[str(v) for v in row] for row in world.rows(store, sql)]

        until_it_ends(scene, chance, {"n1": lambda: kill("n1"), "n2": lambda: kill("n2"), "slurmctld": lambda: kill("controller")}, 8)
        books_balance(scene, query)
        asks_nobody(scene)
        for _ in range(60):    # a job whose node was started anew looks once more into the folder before it ends
            left = jobs_in_queue(scene)
            if not any(state == "PENDING" or processes_of(job) for job, state in left):
                break
            time.sleep(1)
        # Slurm may remember a job that died with its node for as long as the node does not register anew; nothing of it may run, or come to run.
        alive = [(job, state, processes_of(job)) for job, state in left if state == "PENDING" or processes_of(job)]
        assert not alive, f"jobs are left: {alive}"
        if left:
            print(f"Slurm remembers {left}, of which no process is left")
