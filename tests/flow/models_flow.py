#!/usr/bin/env python3
"""models_flow.py - each face of a model from the command line: what is sent, what the ledger says, what never appears.

usage: as flow.py.  `klineage lift` asks for the prose of cards and times nothing, so a busy machine makes no difference here.
SPDX-License-Identifier: Apache-2.0
"""
import json
import pathlib
import sqlite3
import sys

import flow
import model_server

KEY = "sk-secret-of-this-test-0123456789"
TEXT = "## Intent\nKeep what is used again.\n"
FACES = {  # --model: the variable that says where the server is, the path there, the variable of the key
    "anthropic:claude-haiku-5-5": ("ANTHROPIC_BASE_URL", "", "ANTHROPIC_API_KEY"),
    "openai:gpt-6-luna": ("OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"),
    "gemini:gemini-2.5-flash": ("GEMINI_BASE_URL", "/v1beta", "GEMINI_API_KEY"),
    "openrouter:anthropic/claude-opus-4.6": ("OPENROUTER_BASE_URL", "/api/v1", "OPENROUTER_API_KEY"),
    "vertex:us-east5/claude-opus-4-5@20251101": ("VERTEX_BASE_URL", "", "CLOUDSDK_AUTH_ACCESS_TOKEN"),
    "bedrock:us-east-1/global.anthropic.claude-opus-4-6-v1:0": ("BEDROCK_BASE_URL", "", "AWS_BEARER_TOKEN_BEDROCK"),
    "local:qwen3-coder:30b": ("LOCAL_BASE_URL", "/local/v1", "LOCAL_API_KEY"),
}


def lift(p, model, server, *options, **how):
    base, path, key = FACES[model]
    env = {base: f"http://127.0.0.1:{server.port}{path}", key: KEY, "GOOGLE_CLOUD_PROJECT": "my-project"}
    return p.run("lift", p.source / "library/lineages/topk-c.json", "--library", p.folder / "cards", "--model", model, *options, env=env, **how)


def journal(p):
    return p.folder / "state/klineage/klineage.db"


def charges(p, model):
    connection = sqlite3.connect(f"file:{journal(p)}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT state, price_date, reserved_microusd, settled_microusd, estimated FROM charge WHERE model = ?",
                                  [model]).fetchall()
    finally:
        connection.close()


def named(model):
    return model if model.startswith("local:") else model.partition(":")[2]


def no_key_anywhere(p):
    for path in pathlib.Path(p.folder).rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), f"the key is in {path}"


def test_every_face_is_asked_and_charged(p):
    for model in FACES:
        with model_server.Server(replies=[TEXT] * 99) as server:
            answer = lift(p, model, server).is_("ok")
            assert KEY not in answer.out + answer.err and server.requests()
        rows = charges(p, named(model))
        assert rows and all(state == "settled" for state, *_ in rows), (model, rows)
        says = "billed" if model.startswith("openrouter:") else "2026-11-20"
        assert all(date == says and not estimated for _, date, _, _, estimated in rows), (model, rows)
        assert all((settled == 0) == model.startswith("local:") for *_, settled, _ in rows), (model, rows)
    no_key_anywhere(p)
    total = p.run("cost", "--json").is_("ok").json()["total"]
    assert total["billed"] == len(charges(p, "anthropic/claude-opus-4.6")) < total["calls"], total
    p.run("cost").is_("ok", "cost what the provider said")


AGENTS = {  # what each prints for one answer, and what the ledger says of it in microdollars; None: tokens at the price of --priced-as
    "claude -p --output-format json": (
        {"type": "result", "subtype": "success", "is_error": False, "result": TEXT, "total_cost_usd": 0.0123,
         "usage": {"input_tokens": 100, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 0, "output_tokens": 20}}, 12300),
    "codex exec --json -": (
        [{"type": "thread.started", "thread_id": "t"}, {"type": "turn.started"},
         {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": TEXT}},
         {"type": "turn.completed", "usage": {"input_tokens": 26549, "cached_input_tokens": 22272, "output_tokens": 1590}}], None),
    "gemini --output-format json": (
        {"response": TEXT, "stats": {"models": {"gemini-2.5-pro": {"api": {"totalRequests": 1}, "tokens": {
            "prompt": 1200, "candidates": 20, "total": 1370, "cached": 900, "thoughts": 150, "tool": 0}}}}}, None),
    "opencode run --format json": (
        [{"type": "step_start", "sessionID": "s", "part": {"type": "step-start"}},
         {"type": "text", "sessionID": "s", "part": {"type": "text", "text": TEXT}},
         {"type": "step_finish", "sessionID": "s", "part": {"type": "step-finish", "reason": "stop", "cost": 0.002, "tokens": {
             "input": 200, "output": 30, "reasoning": 7, "cache": {"read": 500, "write": 40}}}}], 2000),
}


def test_agents_on_the_path_are_models_with_their_usage(p):
    """The programs are doubles that print what the agents' own pages document; everything behind them is real."""
    folder = p.folder / "path"
    folder.mkdir()
    for command, (prints, cost) in AGENTS.items():
        program = folder / command.split()[0]
        text = "\n".join(map(json.dumps, prints if isinstance(prints, list) else [prints]))
        (folder / "said").write_text(text)
        program.write_text(f"#!/bin/sh\ncat >'{folder}/asked'\ncat '{folder}/said'\n")
        program.chmod(0o755)
        store = p.folder / f"{program.name}.db"
        answer = p.run("lift", p.source / "library/lineages/topk-c.json", "--library", p.folder / program.name, "--model", f"command:{command}", "--store",
                       store, "--priced-as", "claude-opus-4-6", env={"PATH": f"{folder}:{p.env['PATH']}"})
        answer.is_("ok")
        assert "Keep what is used again." in "".join(f.read_text() for f in (p.folder / program.name).rglob("SKILL.md")), command
        assert b"topk" in (folder / "asked").read_bytes(), command
        with sqlite3.connect(store) as journal:
            rows = journal.execute("SELECT state, settled_microusd, estimated FROM charge").fetchall()
        assert rows and all(state == "settled" and settled > 0 for state, settled, _ in rows), (command, rows)
        assert cost is None or all(settled == cost and not estimated for _, settled, estimated in rows), (command, rows)


def test_a_key_that_a_server_repeats_is_kept_nowhere(p):
    for model in FACES:
        for behave in ("echo", "401"):
            with model_server.Server(behave=behave) as server:
                answer = lift(p, model, server, "--store", p.folder / f"{behave}.db")
                assert KEY not in answer.out + answer.err and server.requests(), answer
    no_key_anywhere(p)


def test_a_reply_without_usage_is_an_estimate(p):
    for model in FACES:
        with model_server.Server(behave="no-usage", replies=[TEXT] * 99) as server:
            lift(p, model, server).is_("ok")
        rows = charges(p, named(model))
        assert rows and all(estimated and settled <= reserved for _, _, reserved, settled, estimated in rows), (model, rows)
    p.run("cost").is_("ok", "~$")


def test_long_a_face_in_trouble_goes_on(p):
    for model in list(FACES)[2:]:  # loop_flow.py has the first two
        for behave in ("once-429", "once-529", "once-503"):
            with model_server.Server(behave=behave, replies=[TEXT] * 99) as server:
                lift(p, model, server, "--store", p.folder / f"{behave}.db").is_("ok")
    for model in (m for m in FACES if m.startswith(("gemini:", "bedrock:"))):
        with model_server.Server(behave="cut") as server:
            lift(p, model, server, "--jobs", 9)  # cards wait for their next attempt beside each other
            assert len(server.requests()) > 1, f"{model}: a reply that broke off was not asked for again"
        rows = charges(p, named(model))
        assert {state for state, *_ in rows} == {"lost"} and sum(row[2] for row in rows) <= 10_000_000, (model, rows)


def test_what_is_not_known_is_refused_before_it_is_asked(p):
    keys = {"OPENROUTER_API_KEY": KEY, "LOCAL_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    card = p.source / "library/lineages/topk-c.json"

    def refused(model, *said, **env):
        p.run("lift", card, "--library", p.folder / "cards", "--model", model, env={**keys, **env}).is_("usage", *said)

    with model_server.Server() as server:
        here = f"http://127.0.0.1:{server.port}"
        refused("openrouter:nobody/knows-me", "nobody/knows-me", "--priced-as", OPENROUTER_BASE_URL=here + "/api/v1")
        refused("openai:qwen3-coder:30b", "price", "--model local:NAME", OPENAI_BASE_URL=here + "/v1")
        refused("openai:local:qwen3", "would be priced as", OPENAI_BASE_URL=here + "/v1")
        refused("local:qwen3", "must be on this machine", LOCAL_BASE_URL="http://llm.example/v1")
        refused("vertex:claude-opus-4-6", ":REGION/MODEL", GOOGLE_CLOUD_PROJECT="x")
        assert server.requests() == []
    no_key_anywhere(p)


def test_doctor_names_variables_and_no_values(p):
    answer = p.run("doctor", "--json", env={"GEMINI_API_KEY": KEY, "OPENAI_API_KEY": "", "OPENAI_API_KEY_FILE": "/my/" + KEY})
    models = answer.json()["models"]
    assert models["gemini"] == {"ready": True, "found": "key in GEMINI_API_KEY"}, models
    assert models["openai"] == {"ready": True, "found": "key in the file that OPENAI_API_KEY_FILE names"}, models
    assert models["builtin"]["ready"] and models["local"]["ready"] and not models["bedrock"]["ready"], models
    assert KEY not in answer.out + answer.err


def test_help_has_an_example_of_every_face(p):
    text = p.run("help", "models").is_("ok").out
    for face in p.run("doctor", "--json").json()["models"]:
        assert f"--model '{face}" in text, face


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
