"""money.py - a model's server that charges and breaks off: its own count, the ledger, and the cap.

The server counts what a provider would charge: the whole prompt once it has begun to answer, and the tokens of every piece that it has sent.
SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import json
import random
import subprocess

import world
from world import EXIT, rows

import model_server  # noqa: E402  (world.py puts its folder on the path)
from loop_place import KEY, NOTHING, SESSION  # noqa: E402

REPLIES = [NOTHING, *SESSION[:2], NOTHING, *SESSION[2:]]  # the journal knows these kernels


def tokens(text):
    return (len(text.encode()) + 2) // 3


class Charging(model_server.Handler):
    """Usage as it is; a share of the streams ends somewhere."""

    def answer(self, make, model, what, seen):
        with self.server.lock:
            breaks = self.server.chance.random() < self.server.share
            after = self.server.chance.randint(0, 4)
        prompt = tokens(self.prompt(self.server.seen[-1]["body"]))
        if breaks and after == 0:
            return self.hang_up()  # nothing was said and nothing is charged
        text = self.server.replies[min(self.server.given, len(self.server.replies) - 1)]
        with self.server.lock:
            self.server.given += not breaks
        third = max(1, len(text) // 3)
        pieces = [text[i:i + third] for i in range(0, len(text), third)]
        if breaks:
            pieces = pieces[:after - 1]
        shape = make(model, self.usage(prompt, sum(map(tokens, pieces))))
        self.server.charge(prompt, sum(map(tokens, pieces)), not breaks)
        self.begin()
        self.send(shape.start())
        for piece in pieces:
            self.send(shape.piece(piece))
        if breaks:
            return self.hang_up()
        self.send(shape.stop(shape.REASONS["end"]) + shape.end())
        self.finish_stream()

    @staticmethod
    def prompt(body):
        return json.dumps(body["messages"]) + json.dumps(body.get("system", ""))

    def usage(self, prompt, output):
        if self.server.silent:
            return None
        if self.path == "/v1/messages":
            return {"input_tokens": prompt, "output_tokens": output, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        return {"prompt_tokens": prompt, "completion_tokens": output}


@contextlib.contextmanager
def charging(p, share, seed, silent=False):
    with model_server.Server() as server:
        server.RequestHandlerClass = Charging
        server.share, server.chance, server.given, server.silent, server.replies = share, random.Random(seed), 0, silent, REPLIES
        server.charged = []

        def charge(prompt, output, whole_reply):
            with server.lock:
                server.charged.append((prompt, output, whole_reply))
        server.charge = charge
        base = f"http://127.0.0.1:{server.port}"
        p.env.update(ANTHROPIC_BASE_URL=base, OPENAI_BASE_URL=base + "/v1", ANTHROPIC_API_KEY=KEY, OPENAI_API_KEY=KEY)
        yield server


def optimize(w, at, model, budget, *more):
    return w.p.run("optimize", "running", "--policy", "generate", "--quick", "--patience", "60", "--model", model, "--budget", budget, "--store", "s.db",
                   *more, cwd=at, limit=200)


def charges(at):
    columns = "state, reserved_microusd, settled_microusd, input, cache_read, cache_write_5m, cache_write_1h, output, estimated"
    return rows(at / "s.db", f"SELECT {columns} FROM charge ORDER BY rowid")


def committed(charge):
    return {"settled": charge[2], "released": 0}.get(charge[0], charge[1])


def broken_streams(p, model, seed):
    """Nearly a third of the streams breaks off: the command ends well all the same, in every round."""
    w = world.World(p, only=[])
    cut = whole_replies = 0
    for n in range(3):
        at = w.trial("t")
        with charging(p, 0.3, seed + n) as server:
            answer = optimize(w, at, model, "0.05")
            charged = list(server.charged)
        assert answer.status in (EXIT["ok"], EXIT["no"]) and "model says done" in answer.out, f"round {n}: {answer}"
        ledger = charges(at)
        settled, lost = [c for c in ledger if c[0] == "settled"], [c for c in ledger if c[0] == "lost"]
        assert {c[0] for c in ledger} <= {"settled", "lost"}, ledger
        asked = [(c[3] + c[4] + c[5] + c[6], c[7]) for c in settled]
        assert asked == [(prompt, output) for prompt, output, ended in charged if ended], f"round {n}: {asked} and {charged}"
        assert not any(c[8] for c in settled) and all(c[8] for c in lost), ledger
        parts = [(prompt, output) for prompt, output, ended in charged if not ended]
        assert len(lost) >= len(parts), (lost, charged)  # those of which nothing came are lost too
        assert sum(c[3] + c[5] + c[7] for c in lost) >= sum(prompt + output for prompt, output in parts), f"round {n}: {lost} and {parts}"
        for c in lost:
            assert c[1] < 0.05e6 / 10, f"round {n}: {c} holds money that nobody can have charged"
        assert sum(map(committed, ledger)) <= 50000, ledger
        cut, whole_replies = cut + len(lost), whole_replies + len(settled)
    assert cut >= 3 and whole_replies == 3 * len(REPLIES), (cut, whole_replies)
    print(f"{model}: {whole_replies} replies, {cut} broken off")
    tight(w, p, model, seed)


def tight(w, p, model, seed):
    """A small cap and a bad line: it stops in time, by the server's count too, and no cap is passed however often it is typed again."""
    for n in range(3):
        at, budget = w.trial("t"), 4000
        with charging(p, 0.5, seed + 10 * n) as server:
            for _ in range(3):
                answer = optimize(w, at, model, str(budget / 1e6))
                assert answer.status in (EXIT["ok"], EXIT["no"], EXIT["usage"], EXIT["model"], EXIT["budget"]), str(answer)
            paid = len(server.charged)
        ledger = charges(at)
        assert sum(map(committed, ledger)) <= budget, (n, ledger)
        assert paid <= len(ledger), (paid, ledger)


def without_usage(p):
    """A server that never says what it counted is charged at the bound, which is more than it can have counted, and flagged."""
    w = world.World(p, only=[])
    for model in ("anthropic:claude-haiku-5-5", "openai:gpt-6-luna"):
        at = w.trial("t")
        with charging(p, 0, 1, silent=True) as server:
            optimize(w, at, model, "0.05").is_("ok", "model says done")
            charged = list(server.charged)
        ledger = charges(at)
        assert len(ledger) == len(charged) == len(REPLIES), (ledger, charged)
        for c, (prompt, output, _) in zip(ledger, charged):
            assert c[8] == 1 and c[3] + c[5] >= prompt * 0.9 and c[7] >= output, (c, prompt, output)
            assert 0 < c[2] <= c[1], f"what is charged is above what was reserved: {c}"


def two_processes(p):
    """Two at once on one store and one track: every question is asked once, whoever comes second."""
    w = world.World(p, only=[])
    words = [p.program, "optimize", "running", "--policy", "generate", "--quick", "--patience", "60", "--model", "anthropic:claude-haiku-5-5",
             "--budget", "0.05", "--store", "s.db"]
    for n in range(3):
        at = w.trial("t")
        with charging(p, 0.2, n) as server:
            both = [subprocess.Popen(words, env=p.env, cwd=at, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
            ends = [(one, *one.communicate(timeout=120)) for one in both]
            charged = [c for c in server.charged if c[2]]
        for one, out, err in ends:
            if one.returncode == EXIT["ok"]:
                assert b"model says done" in out, (out, err)
            else:
                others = [other.pid for other in both if other is not one]
                assert one.returncode == EXIT["usage"] and f"process {others[0]} is running this track".encode() in err, (one.returncode, err)
        assert EXIT["ok"] in [one.returncode for one, _, _ in ends], ends
        settled = [c for c in charges(at) if c[0] == "settled"]
        assert len(charged) == len(settled) == len(REPLIES), f"{len(charged)} answers for {len(settled)} rows"
