#!/usr/bin/env python3
"""models_flow.py - each face of a model from the command line: what is sent, what the ledger says, what never appears.

usage: as flow.py.  `klineage lift` asks for the prose of cards and times nothing, so a busy machine makes no difference here.
SPDX-License-Identifier: Apache-2.0
"""
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
            lift(p, model, server)
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
