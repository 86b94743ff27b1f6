#!/usr/bin/env python3
"""reward_flow.py - `klineage serve --reward` from outside: batches, tenants, floods, crashes, and the clients for trainers.

usage: as flow.py.  Needs libmicrohttpd, and is skipped without it.  SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time

import documents
import flow
from flow import alone

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "python"))
import klineage.reward as reward  # noqa: E402

NAIVE = (SOURCE / "tests/data/tasks/saxpy/naive.c").read_text()
PATIENCE_S = 200


def kernel(n, **more):
    """A right one that nobody has seen."""
    return {"id": f"k{n}", "task": "saxpy", "kernel": f"{NAIVE}\nstatic const int variant = {n};\n", "check_only": True, **more}


def wrong(n):
    return kernel(n, kernel=NAIVE.replace("+ y[i]", f"+ y[i] + {n + 1}.0f"))


class Server:
    """A service of a place; killed at the end of the block, unless it has ended."""

    def __init__(self, p, *options, listen=None, token=None, judges=1, env=None):
        self.p, self.token, self.path = p, token, f"{p.folder}/rewards.sock"
        self.store = str(p.folder / "journal.db")
        listen = listen or f"unix:{self.path}"
        self.env = {**p.env, "KLINEAGE_TASKS": str(p.source / "tests/data/tasks"), **(env or {})}
        words = [p.program, "serve", "--reward", "--listen", listen, "--store", self.store, "--judges", str(judges), *options]
        self.process = subprocess.Popen(words, env=self.env, cwd=p.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = self.process.stderr.readline()
        if "libmicrohttpd" in first:
            raise flow.Skip(first.strip())
        self.said = [first]
        threading.Thread(target=self.listen_to, daemon=True).start()
        while "rewards at " not in self.said[-1] and self.process.poll() is None:
            time.sleep(0.02)
        assert self.process.poll() is None, f"did not start: {self.said}"
        self.address = self.said[-1].split("rewards at ")[1].strip()

    def listen_to(self):
        for line in self.process.stderr:
            self.said.append(line)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()

    def client(self, **options):
        return reward.Rewards(self.address, **{"token": self.token, "patience_s": PATIENCE_S, **options})

    def request(self, method, target, body=None, token=None):
        status, headers, said = reward.Rewards(self.address, token or self.token, wait_s=220).request(method, target, body)
        if isinstance(said, dict):
            documents.validate(self.p.source, said)
        return status, headers, said

    def post(self, *kernels, token=None, **more):
        return self.request("POST", "/v1/rewards", {"kernels": list(kernels), **more}, token)

    def metrics(self, token=None):
        text = self.request("GET", "/metrics", token=token)[2]
        return {line.rsplit(" ", 1)[0].removeprefix("klineage_reward_"): float(line.rsplit(" ", 1)[1])
                for line in text.splitlines() if not line.startswith("#")}

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        return self.process.stdout.read()


def by_id(said):
    return {r["id"]: r for r in said["rewards"]}


def verdicts(store):
    """Rows of verdicts by kernel."""
    with contextlib.closing(sqlite3.connect(store)) as journal:
        return dict(journal.execute("SELECT kernel, count(*) FROM verdict GROUP BY kernel"))


# ---- questions and answers ------------------------------------------------------------------------------------------


def test_a_batch_comes_back_with_a_reward_for_each_verdict(p):
    with Server(p) as s:
        batch = [kernel(1), wrong(2), kernel(3, kernel=NAIVE + "no C at all\n"), kernel(4, kernel="int x;"), kernel(5, task="saxpi"),
                 kernel(6, workload="huge"), kernel(7, task="../saxpy"), kernel(8, task=str(p.source / "tests/data/tasks/saxpy")), kernel(9, kernel="")]
        status, _, said = s.post(*batch, wait_seconds=200)
        found = by_id(said)
        assert status == 200 and said["state"] == "done" and said["formula"] == "shaped", said
        assert [(found[f"k{i}"]["outcome"], found[f"k{i}"]["reward"]) for i in (1, 2, 3, 4, 9)] == [
            ("pass", 0.4), ("wrong", 0.1), ("no_compile", 0), ("refused", 0), ("refused", 0)], said
        for i in (5, 6, 7, 8):
            assert found[f"k{i}"]["reward"] is None and found[f"k{i}"]["message"], said
        assert "no task" in found["k7"]["message"] and "no task" in found["k8"]["message"], said
        assert not found["k1"]["journaled"] and found["k1"]["speedup"] is None, said
        kept = verdicts(s.store)
        status, _, again = s.post(*batch)
        assert status == 200 and again["id"] == said["id"] and by_id(again)["k1"]["journaled"], again
        assert [r.get("verdict") for r in again["rewards"]] == [r.get("verdict") for r in said["rewards"]]
        assert verdicts(s.store) == kept and s.metrics()["judged_total"] == 5
        shown = p.run("verdict", "show", found["k2"]["verdict"][:16], "--store", s.store, "--json").is_("ok").json()
        assert shown["outcome"] == "wrong" and shown["receipt"], shown
        whole = s.post(kernel(1), formula="correct", verdicts=True)[2]["rewards"][0]
        assert whole["reward"] == 1 and whole["of"]["schema"] == "klineage/verdict", whole


@alone
def test_speed_is_what_the_gate_decided(p):
    with Server(p) as s:
        slow = NAIVE.replace("out[i] = a * x[i] + y[i]", "{ volatile float v = 0; for (int j = 0; j < 40; j++) v = a * x[i]; out[i] = v + y[i]; }")
        said = s.post(kernel(1, check_only=False, against=slow, quick=True), wait_seconds=200)[2]["rewards"][0]
        if said.get("state") == "pending":
            raise flow.Skip("this machine is too busy: no verdict for minutes")
        assert said["outcome"] in ("pass", "unstable") and said["speedup"]["baseline"] and said["reward"] >= 0.4, said
        assert (said["reward"] > 0.4) == (said["speedup"]["call"] == "faster"), said
        if said["outcome"] == "unstable":
            raise flow.Skip("this machine is too busy: the time did not settle")
        assert said["speedup"]["call"] == "faster" and said["speedup"]["low"] > 1, said


def test_less_assurance_than_required_is_no_reward(p):
    with Server(p, "--require-assurance", "A") as s:
        said = s.post(kernel(1), wait_seconds=200)[2]["rewards"][0]
        assert said["reward"] is None and said["error"] == "isolation not available" and not verdicts(s.store), said
    with Server(p) as s:
        assert s.post(kernel(1), wait_seconds=200)[2]["rewards"][0]["assurance"] in "BC"


def test_an_answer_that_is_not_there_yet_is_asked_for_again(p):
    with Server(p) as s:
        status, headers, said = s.post(kernel(1), kernel(2), wait_seconds=0)
        assert status == 202 and said["state"] == "pending" and headers["Location"] == f"/v1/rewards/{said['id']}", said
        assert s.post(kernel(1), kernel(2), wait_seconds=0)[2]["id"] == said["id"]
        status, _, done = s.request("GET", f"/v1/rewards/{said['id']}?wait_seconds=200")
        assert status == 200 and [r["reward"] for r in done["rewards"]] == [0.4, 0.4], done
        status, _, kept = s.request("GET", f"/v1/rewards/{said['id']}")
        assert status == 200 and [r["verdict"] for r in kept["rewards"]] == [r["verdict"] for r in done["rewards"]], kept
        for nothing in ("0" * 64, "open", said["id"][:12], "../journal.db", ""):
            assert s.request("GET", f"/v1/rewards/{nothing}")[0] == 404, nothing
        assert s.metrics()["judged_total"] == 2


def test_the_same_question_at_the_same_time_is_judged_once(p):
    with Server(p, judges=2) as s:
        found = []
        ask = [threading.Thread(target=lambda i=i: found.append(s.post(kernel(1, id=f"from{i}"), kernel(2), wait_seconds=200))) for i in range(12)]
        for thread in ask:
            thread.start()
        for thread in ask:
            thread.join()
        assert len(found) == 12 and all(status == 200 for status, _, _ in found), found
        assert len({r["verdict"] for _, _, said in found for r in said["rewards"]}) == 2
        counts = s.metrics()
        assert counts["judged_total"] == 2 and counts["coalesced_total"] + counts["hits_total"] == 22, counts
        assert set(verdicts(s.store).values()) == {1}


# ---- what is no question --------------------------------------------------------------------------------------------


def raw(s, data):
    """The status that some bytes are answered with; None: the connection was closed."""
    with socket.socket(socket.AF_UNIX) as c:
        c.settimeout(20)
        c.connect(s.path)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            c.sendall(data)
        with contextlib.suppress(ConnectionResetError):
            found = re.match(rb"HTTP/1.1 (\d+)", c.recv(4096))
            return int(found[1]) if found else None


def test_malformed_and_huge_requests_are_refused_and_the_service_goes_on(p):
    with Server(p) as s:
        post = b"POST /v1/rewards HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
        for body in (b"", b"{", b"[]", b"{}", b'{"kernels":[]}', b'{"kernels":[{"id":"\xff\xfe"}]}', b'{"kernels":{}}', b"\0" * 100,
                     b'{"kernels":' + b"[" * 100000, b'{"kernels":[],"kernels":[]}', b'{"kernels":[{"id":"a","task":"saxpy","path":"/etc/passwd"}]}'):
            assert raw(s, post % (len(body), body)) == 400, body[:60]
        many = json.dumps({"kernels": [kernel(i) for i in range(65)]}).encode()
        assert raw(s, post % (len(many), many)) == 413
        assert raw(s, post % (9 << 20, b"x" * 1000)) == 413
        chunk = b"%x\r\n%s\r\n" % (1 << 20, b"x" * (1 << 20))
        assert raw(s, b"POST /v1/rewards HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 9 + b"0\r\n\r\n") == 413
        assert raw(s, b"GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n") == 404
        assert raw(s, b"DELETE /v1/rewards HTTP/1.1\r\nHost: x\r\n\r\n") == 405
        assert raw(s, b"nonsense\r\n\r\n") in (400, None)
        assert s.request("GET", "/healthz")[2] == "ok\n"
        assert s.post(kernel(1), wait_seconds=200)[2]["rewards"][0]["reward"] == 0.4


def test_mistakes_at_the_shell(p):
    p.run("serve", "--reward", "--mcp").is_("usage", "one protocol")
    p.run("serve", "--reward", env={"KLINEAGE_LIBMICROHTTPD": "/nonexistent.so"}).is_("no_device", "libmicrohttpd", "apt install")
    with Server(p) as s:
        p.run("serve", "--reward", "--listen", "127.0.0.1:0", "--store", s.store).is_("usage", "serves rewards from this journal")
        p.run("serve", "--reward", "--listen", s.address, "--store", "other.db").is_("usage", "another program listens there")
    p.run("serve", "--reward", "--listen", "0.0.0.0:0").is_("usage", "not of this machine alone", "--tokens")
    p.run("serve", "--reward", "--listen", "example.com:80").is_("usage", "no address in numbers")
    p.run("serve", "--reward", "--listen", "99999").is_("usage", "is no address")
    p.run("serve", "--reward", "--listen", "127.0.0.1:0", "--tokens", "none.json").is_("usage", "none.json")
    p.run("serve", "--reward", "--judges", "0").is_("usage", "--judges")
    p.run("serve", "--reward", "--listen", "127.0.0.1:0", "--audit", "/nonexistent/a").is_("usage", "/nonexistent/a")


def test_no_web_page_can_ask(p):
    with Server(p, listen="127.0.0.1:0") as s:
        host = s.address.removeprefix("http://")
        for headers, status in (({}, 200), ({"Host": "evil.example"}, 403), ({"Origin": "http://evil.example"}, 403), ({"Host": "localhost:1"}, 200)):
            c = http.client.HTTPConnection(host, timeout=20)
            c.request("GET", "/v1/tasks", headers=headers)
            assert c.getresponse().status == status, headers
            c.close()
    with Server(p) as s:
        assert os.stat(s.path).st_mode & 0o777 == 0o600
        assert "done" not in s.stop()
    assert not os.path.exists(s.path)


# ---- tenants --------------------------------------------------------------------------------------------------------


def tenants(p, **limits):
    named = {"alice": {"tasks": ["saxpy"]}, "bob": {"tasks": ["scale_inplace"], "folders": [str(p.source / "tests/data/tasks")]},
             "ops": {"tasks": [], "operator": True}}
    rows = [{"name": n, "sha256": hashlib.sha256(f"token of {n}".encode()).hexdigest(), **o, **limits} for n, o in named.items()]
    return "--tokens", p.write("tenants.json", json.dumps({"tenants": rows}))


def test_tenants_cannot_read_each_others(p):
    with Server(p, *tenants(p), "--audit", str(p.folder / "audit.jsonl"), token="token of alice") as s:
        for nobody in ("token of eve", "x" * 5000, "token of alic"):
            assert s.post(kernel(1), token=nobody)[0] in (401, 431, 400), nobody
        assert s.post(kernel(1), token="wrong", wait_seconds=0)[0] == 401 and not verdicts(s.store)
        status, _, hers = s.post(kernel(1), wait_seconds=200)
        assert status == 200 and hers["rewards"][0]["reward"] == 0.4, hers
        assert s.request("GET", f"/v1/rewards/{hers['id']}")[0] == 200
        assert s.request("GET", f"/v1/rewards/{hers['id']}", token="token of bob")[0] == 404
        assert s.request("GET", "/v1/tasks")[2]["tasks"] == ["saxpy"]
        assert s.request("GET", "/v1/tasks", token="token of ops")[2]["tasks"] == []
        assert "no task 'scale_inplace'" in s.post(kernel(1, task="scale_inplace"))[2]["rewards"][0]["message"]
        # The same text of another tenant is another question: neither its id nor its answer tells that it was asked before.
        _, _, his = s.post(kernel(1), token="token of bob", wait_seconds=200)
        assert his["id"] != hers["id"] and his["rewards"][0]["verdict"] != hers["rewards"][0]["verdict"], (his, hers)
        assert not his["rewards"][0]["journaled"]
        assert s.request("GET", "/metrics")[0] == 403 and s.metrics("token of ops")["judged_total"] == 2
        text = (p.folder / "audit.jsonl").read_text()
        rows = [json.loads(line) for line in text.splitlines()]
        assert {r["tenant"] for r in rows} == {None, "alice", "bob", "ops"} and "token of" not in text and "saxpy" not in text, text
        assert [r["status"] for r in rows if r["tenant"] == "bob"] == [404, 200], rows


def test_a_flood_is_turned_away_and_the_others_go_on(p):
    with Server(p, *tenants(p, in_flight=4, per_minute=300), token="token of alice") as s:
        assert s.post(*[kernel(i) for i in range(4)], wait_seconds=0)[0] == 202
        status, headers, said = s.post(kernel(9), wait_seconds=0)
        assert status == 429 and int(headers["Retry-After"]) >= 1 and "quota" in said["message"], said
        assert s.post(*[kernel(i) for i in range(4)], wait_seconds=0)[0] in (200, 202)  # the same batch: nothing is added
        assert s.post(kernel(1), token="token of bob", wait_seconds=200)[0] == 200
        assert s.client(wait_s=100).ask([kernel(9)])[0]["reward"] == 0.4  # the client waits for its turn
        statuses = {s.post(*[kernel(n % 4, id=str(n)) for n in range(60)], wait_seconds=0)[0] for _ in range(8)}
        assert 429 in statuses and statuses <= {200, 202, 429}, statuses
        assert s.post(kernel(1), token="token of bob")[0] == 200
        assert s.metrics("token of ops")['responses_total{status="429"}'] >= 2


def test_the_queue_is_bounded(p):
    with Server(p) as s:
        statuses = [s.post(*[kernel(1000 * b + i) for i in range(64)], wait_seconds=0)[0] for b in range(66)]
        assert statuses[0] == 202 and statuses[-1] == 429 and set(statuses) == {202, 429}, statuses
        assert s.metrics()["queue_depth"] <= 4096


# ---- crashes --------------------------------------------------------------------------------------------------------


def test_killed_in_the_middle_nothing_is_lost_and_nothing_judged_twice(p):
    batches = [[kernel(10 * b + i) for i in range(4)] for b in range(4)]
    with Server(p, judges=2) as s:
        ids = [s.post(*batch, wait_seconds=0)[2]["id"] for batch in batches]
        until = time.time() + 100
        while len(verdicts(s.store)) < 3 and time.time() < until:
            time.sleep(0.05)
        s.kill()
    before = verdicts(s.store)
    assert 3 <= len(before) < 16, before
    with Server(p, judges=2) as s:
        found = [s.request("GET", f"/v1/rewards/{id}?wait_seconds=200")[2] for id in ids]
        assert [[r["reward"] for r in f["rewards"]] for f in found] == [[0.4] * 4] * 4, found
        again = [s.post(*batch)[2] for batch in batches]
        assert [f["id"] for f in again] == ids
        counts = s.metrics()
        assert counts["judged_total"] <= 16 - len(before), (counts, len(before))
    after = verdicts(s.store)
    assert len(after) == 16 and set(after.values()) == {1}, after


def test_a_verdict_whose_question_a_crash_forgot_is_found(p):
    with Server(p) as s:
        first = s.post(kernel(1), wrong(2), wait_seconds=200)[2]
        s.stop()
    with contextlib.closing(sqlite3.connect(s.store)) as journal, journal:
        journal.execute("DELETE FROM effect WHERE run = 'reward'")
        journal.execute("UPDATE record SET name = 'open' WHERE kind = 'reward'")
    before = verdicts(s.store)
    with Server(p) as s:
        again = s.request("GET", f"/v1/rewards/{first['id']}?wait_seconds=200")[2]
        assert [r["verdict"] for r in again["rewards"]] == [r["verdict"] for r in first["rewards"]], (first, again)
        assert s.metrics()["judged_total"] == 0 and verdicts(s.store) == before


def test_a_client_lives_through_a_restart(p):
    listen = "127.0.0.1:0"
    with Server(p, listen=listen) as s:
        answers, batch = [], [kernel(i) for i in range(6)]
        client = s.client(wait_s=30)
        asking = threading.Thread(target=lambda: answers.extend(client.ask(batch)))
        asking.start()
        until = time.time() + 100
        while not verdicts(s.store) and time.time() < until:
            time.sleep(0.05)
        s.kill()
    with Server(p, listen=s.address.removeprefix("http://")):
        asking.join(150)
    assert [a["reward"] for a in answers] == [0.4] * 6, answers
    assert set(verdicts(s.store).values()) == {1}


def test_a_judge_that_dies_is_replaced_and_its_question_asked_again(p):
    with Server(p) as s:
        assert s.post(kernel(1), wait_seconds=200)[0] == 200
        s.post(*[kernel(i) for i in range(2, 6)], wait_seconds=0)
        children = pathlib.Path(f"/proc/{s.process.pid}/task/{s.process.pid}/children").read_text().split()
        assert len(children) == 1, children
        os.kill(int(children[0]), signal.SIGKILL)
        found = s.post(*[kernel(i) for i in range(2, 6)], wait_seconds=200)[2]
        assert [r["reward"] for r in found["rewards"]] == [0.4] * 4, found
        assert s.metrics()["judge_restarts_total"] == 1 and set(verdicts(s.store).values()) == {1}


def test_a_stop_in_order_leaves_the_rest_to_the_next_start(p):
    with Server(p) as s:
        batch = [kernel(i) for i in range(12)]
        waits = []
        asking = threading.Thread(target=lambda: waits.append(s.post(*batch, wait_seconds=100)))
        asking.start()
        while s.metrics()["judging"] < 1:
            time.sleep(0.02)
        said = s.stop()
        asking.join(20)
        assert s.process.returncode == 0 and "left for the next start" in said, said
        assert waits and waits[0][0] == 202 and waits[0][2]["state"] == "pending", waits
    with Server(p) as s:
        assert s.request("GET", f"/v1/rewards/{waits[0][2]['id']}?wait_seconds=200")[0] == 200
        assert set(verdicts(s.store).values()) == {1} and len(verdicts(s.store)) == 12


def test_a_journal_that_cannot_grow_takes_nothing_and_loses_nothing(p):
    with Server(p) as s:
        first = s.post(kernel(1), wait_seconds=200)[2]
        before = resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        status, headers, said = s.post(kernel(2), wait_seconds=0)
        assert status == 503 and headers["Retry-After"] and said["message"], said
        assert s.post(kernel(1))[2]["rewards"][0]["verdict"] == first["rewards"][0]["verdict"]  # what is known is still told
        resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, before)
        assert s.client().ask([kernel(2)])[0]["reward"] == 0.4
        assert s.metrics()["judged_total"] == 2


def test_other_hosts_judge_through_a_spool(p):
    spool = str(p.folder / "spool")
    with Server(p, "--spool", spool) as s:
        status, _, said = s.post(kernel(1), wrong(2), kernel(3), wait_seconds=1)
        assert status == 202, said
        p.run("spool", spool, "--work", limit=200).is_("ok", "3 judged")
        status, _, done = s.request("GET", f"/v1/rewards/{said['id']}?wait_seconds=60")
        assert status == 200 and [r["reward"] for r in done["rewards"]] == [0.4, 0.1, 0.4], done


# ---- trainers -------------------------------------------------------------------------------------------------------


def test_reward_functions_of_trainers(p):
    with Server(p, listen="127.0.0.1:0", judges=2) as s:
        replies = [f"Here it is.\n```c\n{kernel(1)['kernel']}```\nIt is fast.", kernel(2)["kernel"], "I cannot do that.",
                   [{"role": "assistant", "content": f"```c\n{wrong(3)['kernel']}\n```"}]]
        trl = reward.TRL(s.client(), check_only=True)
        assert trl(prompts=["p"] * 4, completions=replies, task=["saxpy"] * 4) == [0.4, 0.4, 0, 0.1]
        assert trl.__name__ == "klineage_shaped"
        assert reward.TRL(s.client(formula="correct"), task="saxpi")(["p"], [replies[0]]) == [None]
        os.environ["KLINEAGE_REWARD"] = s.address
        assert reward.reward_func(["p"], [replies[0]], task=["saxpy"], check_only=[True]) == [0.4]
        assert reward.compute_score("klineage", replies[0], "saxpy", {"check_only": True}) == 0.4
        assert reward.compute_score("klineage", "nothing", "saxpi") == 0
        try:
            s.client(formula="mine").ask([kernel(1)])
        except reward.Refused as why:
            assert why.status == 400 and "no formula" in str(why), why
        else:
            raise AssertionError("a wrong formula was not refused")


def test_trl_trains_a_model_by_the_rewards(p):
    python = os.environ.get("KLINEAGE_PYTHON", "python3")
    env = {**p.env, "PYTHONPATH": f"{p.source}/python:{os.environ.get('PYTHONPATH', '')}", "HF_HUB_OFFLINE": "1"}
    if subprocess.run([python, "-c", "import trl, transformers, datasets"], env=env, capture_output=True).returncode:
        raise flow.Skip("no package trl; KLINEAGE_PYTHON names a Python that has it")
    asked = {"task": "saxpy", "kernels": [kernel(1)["kernel"], wrong(2)["kernel"], NAIVE + "no C at all", "int x;"]}
    with Server(p, listen="127.0.0.1:0") as s:
        trained = subprocess.run([python, "-B", str(p.source / "tests/flow/reward_trl.py"), s.address, str(p.folder), "20"], env=env, text=True,
                                 input=json.dumps(asked), capture_output=True, timeout=280)
        assert trained.returncode == 0, trained.stderr[-2000:]
        found = json.loads(trained.stdout.strip().splitlines()[-1])
        assert found["before"][0] < 0.3 and found["after"][0] > 0.8, found
        assert s.metrics()["judged_total"] <= 6, s.metrics()  # each word once, whatever the number of steps


def main():
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
