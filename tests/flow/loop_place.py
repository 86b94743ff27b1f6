#!/usr/bin/env python3
"""loop_place.py - what the tests of loop_flow.py share: a small task, a scripted model behind a server, and looks into ledger and page.

The task is loop/running, a running sum small enough that a gate takes a second or so, with kernels so far apart that noise decides nothing.
SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import fcntl
import hashlib
import html.parser
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

import model_server
from flow import EXIT, Skip

HERE = pathlib.Path(__file__).resolve().parent
LOOP = HERE / "loop"
TASK = LOOP / "running"
NAIVE, FAST, CHEAT = ((LOOP / name).read_text() for name in ("running/naive.c", "fast.c", "cheat.c"))
HAIKU, LUNA = "anthropic:claude-haiku-5-5", "openai:gpt-6-luna"
KEY = "sk-secret-of-this-test"
EXIT.update(budget=12, model=13)


def edit(search, replace, action="other:one_pass", **more):
    head = "".join(f"{k.upper()}: {v}\n" for k, v in dict(action=action, locus="loop i", why="each sum goes on from the last", **more).items())
    return f"{head}\n<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


def whole(source, action="other:one_pass"):
    return f"ACTION: {action}\nLOCUS: running()\nWHY: one pass\n\n```c\n{source}```\n"


INNER = """        float sum = 0;
        for (int32_t j = 0; j <= i; j++)
            sum += x[j];
        y[i] = sum;
"""
GOOD = edit(INNER, "        y[i] = i ? y[i - 1] + x[i] : x[i];\n")
WRONG = edit("y[i] = i ? y[i - 1] + x[i] : x[i];\n".join(["        ", ""]), "        y[i] = i ? y[i - 1] - x[i] : x[i];\n")
BROKEN = whole(FAST.replace("sum += x[i];", "sum += x[i]"))
NOTHING = "I would rather talk about the weather.\n"
DONE = "DONE: one pass over the data is all there is\n"
SESSION = [GOOD, WRONG, NOTHING, whole(CHEAT), BROKEN, DONE]
FATES = ["pass", "pass", "wrong", "no_edit", "cheat", "no_compile", "done", "pass"]  # the start first, the end last


# ---- a place with a model ------------------------------------------------------------------------------------------------


def database(p):
    return p.folder / "state/klineage/klineage.db"


def rows(store, query, *values):
    journal = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return journal.execute(query, values).fetchall()
    finally:
        journal.close()


def recording(p, replies, track="running/generate/1", purpose="generate", name="calls.jsonl", version=1):
    """A script by hand, in order."""
    lines = [dict(schema="klineage/recording", version=version, model="claude-haiku-5-5", command="optimize", note="")]
    lines += [dict(slot=f"{track}/{purpose}/{i}", text=text) for i, text in enumerate(replies)]
    return "replay:" + p.write(name, "".join(json.dumps(line) + "\n" for line in lines))


def optimize(p, model, *options, budget="0.05", env=None, task=TASK, policy="generate", shape=("--quick",), **how):
    return p.run("optimize", task, "--policy", policy, *shape, "--model", model, "--budget", budget, *options, limit=230,
                 env={"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, **(env or {})}, **how)


UNSETTLED = ("unstable", "undecided", "not measurable", "not timed", "did not settle", "did not converge", "A/A noise")


def settled(answer):
    if any(word in answer.out + answer.err for word in UNSETTLED):
        raise Skip("this machine is too busy: no time settled")
    return answer


@contextlib.contextmanager
def serving(p, replies=None, behave="ok"):
    """A server, and the environment that leads to it."""
    with model_server.Server(replies=replies, behave=behave) as server:
        base = f"http://127.0.0.1:{server.port}"
        p.env.update(ANTHROPIC_BASE_URL=base, OPENAI_BASE_URL=base + "/v1")
        yield server


def keep_verdicts_alone(store, and_runs=False):
    """With `and_runs` also that they were begun."""
    journal = sqlite3.connect(store)
    with journal:
        for table in ("effect", "charge", "step", "record", "blob") + (() if and_runs else ("run",)):
            journal.execute(f"DELETE FROM {table}")
    journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    journal.close()


def begin_with(p, name, decides, search):
    """Begin with a journal that holds the verdicts of `search(store)` and nothing else.  It is made once on this machine for each build of the programs,
    by the first test that asks; `decides` are the bytes that decide which kernels are judged."""
    cache = pathlib.Path(p.env["KLINEAGE_CACHE"])
    cache.mkdir(parents=True, exist_ok=True)
    programs = bytes_of(pathlib.Path(p.program).parent / program for program in ("klineage", "klineage-worker"))
    ready = cache / f"{name}-{hashlib.sha256(decides + programs).hexdigest()[:16]}.db"
    database(p).parent.mkdir(parents=True)
    with open(cache / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            store = p.folder / "warm.db"
            search(store)
            keep_verdicts_alone(store)
            shutil.copy(store, cache / f"{name}.new")
            os.rename(cache / f"{name}.new", ready)
    shutil.copy(ready, database(p))


def bytes_of(files):
    return b"".join(f.read_bytes() for f in sorted(files) if f.is_file())


def warm(p):
    """Begin with the verdicts of SESSION, and of a walk."""
    def search(store):
        settled(optimize(p, recording(p, SESSION), "--store", store)).is_("ok")
        settled(p.run("walk", TASK, p.write("fast.c", FAST), "--quick", "--model", walk_script(p), "--store", store, limit=230)).is_("ok")
    sources = [*TASK.rglob("*.*"), p.source / "src/search/search.c", p.source / "src/lineage/attempt.c"]
    begin_with(p, "loop", "".join(SESSION).encode() + bytes_of(sources), search)
    return p


def walk_script(p):
    lines = [dict(schema="klineage/recording", version=1, model="claude-haiku-5-5", command="walk", note="")]
    undone = FAST.replace("// Running sum, one pass.", "// Running sum.").replace("    float sum = 0;\n", "").replace(
        "        sum += x[i];\n        y[i] = sum;\n", INNER)
    for slot, text in (("deoptimize 1/0", NOTHING), ("deoptimize 1/1", whole(undone)), ("rederive 1/0", whole(FAST)), ("deoptimize 2/0", DONE)):
        lines.append(dict(slot="walk/" + slot, text=text))
    return "replay:" + p.write("walk.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def steps(p, run):
    return p.run("run", "show", run, "--json").is_("ok").json()["steps"]


def only_run(p):
    (run,) = p.run("run", "list", "--json").is_("ok").json()["runs"]
    return run["id"]


def ledger(p, budget=0.05):
    """Every charge; no run of these tests has more than one track unless it says so."""
    charges = rows(database(p), "SELECT effect, attempt, state, reserved_microusd, settled_microusd FROM charge ORDER BY rowid")
    done = [c for c in charges if c[2] == "settled"]
    assert len({c[0] for c in done}) == len(done), f"a call was settled twice: {charges}"
    committed = sum(c[4] if c[2] == "settled" else 0 if c[2] == "released" else c[3] for c in charges)
    assert committed <= round(budget * 1e6), f"${committed / 1e6} of ${budget}: {charges}"
    return charges


def states(p, **how):
    return [c[2] for c in ledger(p, **how)]


def texts_of(body):
    def text(content):
        return content if isinstance(content, str) else "".join(part["text"] for part in content)
    system = [text(body["system"])] if "system" in body else []
    return system + [text(m["content"]) for m in body["messages"]]


def start(p, *words, env=None):
    return subprocess.Popen([p.program, *map(str, words)], env={**p.env, **(env or {})}, cwd=p.folder, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


class Turns(model_server.Handler):
    """Behaves as server.answers says, one a request, and well from then on."""

    def answer(self, make, model, what, seen):
        how = next(self.server.answers, "ok")
        with self.server.lock:
            self.server.seen[-1]["behaviour"] = how
        super().answer(make, model, how, seen)


def turn_by_turn(server, *answers):
    server.answers = iter(answers)
    server.RequestHandlerClass = Turns


def kept(store, run):
    """What a run left that has to be the same however it came about: steps and the answers they rest on, and what was charged."""
    the_steps = [(track, n, json.loads(text)) for track, n, text in rows(store, "SELECT track, n, json FROM step WHERE run = ? ORDER BY track, n", run)]
    effects = []
    for effect in rows(store, "SELECT key, track, kind, purpose, ordinal, request, answer FROM effect WHERE run = ? ORDER BY track, kind, ordinal, key", run):
        answer = effect[6]
        if effect[2] == "ask":
            answer = {k: v for k, v in json.loads(answer).items() if k != "wall_ns"}
        effects.append((*effect[:6], answer))
    columns = "effect, track, workload, policy, phase, model, priced_as, settled_microusd, input, cache_read, output"
    return the_steps, effects, rows(store, f"SELECT {columns} FROM charge WHERE run = ? AND state = 'settled' ORDER BY effect", run)


# ---- pages ---------------------------------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    VOID = {"meta", "br", "hr", "img", "link", "input", "circle", "line", "path", "rect", "polyline", "polygon"}
    LOOSE = {"li", "p", "td", "th", "tr"}  # may be left open

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.links, self.tags = [], set(), [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"<{tag} {name}>"
            assert name not in ("src", "srcset", "action", "background") and not (name == "href" and not value.startswith("#")), (tag, name, value)
            assert "url(" not in (value or "") or "url(#" in value, (tag, name, value)
            if name == "id":
                assert value not in self.ids, f"the id {value} is there twice"
                self.ids.add(value)
            if name == "href":
                self.links.append(value[1:])
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in self.LOOSE:
            self.open.pop()
        assert self.open and self.open[-1] == tag, f"</{tag}> in {self.open}"
        self.open.pop()


def page(p, *runs):
    out = p.folder / "report.html"
    p.run("report", *runs, "--out", out, "--json").is_("ok")
    text = out.read_text(encoding="utf-8")
    parsed = Page()
    parsed.feed(text)
    parsed.close()
    assert parsed.open in ([], ["html"], ["html", "body"]), parsed.open
    assert not parsed.tags & {"script", "iframe", "object", "embed", "link", "img", "base", "form"}, parsed.tags
    assert not re.search(r"@import|javascript:|\x1b", text)
    assert [link for link in parsed.links if link not in parsed.ids] == [], parsed.links
    assert any(link.startswith("v-") for link in parsed.links), "no number leads to its verdict"
    return text
