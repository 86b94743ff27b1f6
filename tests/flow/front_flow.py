#!/usr/bin/env python3
"""front_flow.py - what people type wrong on the way in: each answer names the mistake and the next command to type.

usage: as flow.py.  What is about models, money and recordings has to be answered before anything is compiled, so these tests look at the
journal and the cache afterwards: nothing may be there.  SPDX-License-Identifier: Apache-2.0
"""
import json
import shutil
import subprocess
import sys

import flow


def nothing_was_done(p):
    """No verdict was made and nothing was compiled."""
    cache = p.folder / "own-cache"
    assert not list(cache.rglob("*.so")), "something was compiled before the arguments were checked"
    assert not p.run("verdict", "list", "--json").json()["verdicts"]


def refused_at_once(p, *words, said, env=None):
    answer = p.run(*words, env={"KLINEAGE_CACHE": str(p.folder / "own-cache"), **(env or {})})
    answer.is_("usage", *said)
    nothing_was_done(p)


def no_keys():
    return dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY_FILE", "OPENAI_API_KEY", "OPENAI_API_KEY_FILE"), "")


def test_a_kernel_without_its_task(p):
    for command in (("kernel", "facts"), ("kernel", "compile")):
        refused_at_once(p, *command, p.naive, said=("--task TASK is needed", "klineage task list"))


def test_a_model_is_checked_before_the_first_compile(p):
    expert = p.source / "experts/gemm/c/8-expert.c"
    for command in (("optimize", "softmax"), ("walk", "gemm", expert), ("lift", p.source / "library/lineages/gemm-c.json")):
        refused_at_once(p, *command, "--model", "replay:/nope", said=("/nope", "klineage run record"))
        refused_at_once(p, *command, "--model", "claude", said=("unknown model provider", "did you mean --model 'anthropic:claude'?"))
        refused_at_once(p, *command, "--model", "anthropic:claude-opus-4-6", env=no_keys(), said=("no key", "ANTHROPIC_API_KEY"))
        refused_at_once(p, *command, said=("no model given", "klineage help models"))


def test_a_price_is_checked_before_the_first_compile(p):
    keys = {"ANTHROPIC_API_KEY": "not-a-key", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    refused_at_once(p, "optimize", "softmax", "--model", "anthropic:claude-99", env=keys, said=("claude-99", "price"))
    refused_at_once(p, "optimize", "softmax", "--model", "anthropic:claude-opus-4-6", "--budget", "0", env=keys,
                    said=("the budget is $0", "--budget 5"))


def test_money_is_a_number_without_a_sign(p):
    for text in ("-1", "$5", "inf", "nan", "5usd"):
        refused_at_once(p, "optimize", "softmax", "--model", "builtin", "--budget", text, said=("not an amount", "--budget 0.25"))


def test_names_that_are_nearly_right(p):
    library = p.source / "library"
    p.run("card", "show", "pack-c", "--library", library).is_("usage", "no card named pack-c", "did you mean pack-b-c?")
    p.run("optimize", "gemm", "--policy", "klinage", "--model", "builtin").is_("usage", "did you mean klineage?")
    p.run("lineage", "import", library / "lineages/gemm-c.json").is_("ok")
    p.run("lineage", "show", "gem-c").is_("usage", "did you mean gemm-c?")


def test_a_lineage_file_that_is_not_there(p):
    for command in (("lineage", "show"), ("lift", "--model", "builtin")):
        answer = p.run(*command, "build/demo/gemm.json").is_("usage", "build/demo/gemm.json", "no such file", "klineage walk")
        assert "journal.db" not in answer.err


def test_sizes_that_fit_no_machine(p):
    p.gate(p.naive, "--workload", "M=9000000000,N=9000000000,K=9000000").is_("usage", "overflows 64 bits", "--workload", "too large")


def test_folders_that_are_no_task(p):
    (p.folder / "empty").mkdir()
    p.run("task", "show", p.folder / "empty").is_("usage", "no definition.json", "docs/how-to/add-a-task.md")
    broken = p.folder / "broken"
    broken.mkdir()
    (broken / "definition.json").write_text('{"name": ')
    answer = p.run("task", "show", broken).is_("usage", "definition.json")
    assert "workloads.jsonl" not in answer.err, "the definition is what is wrong"


def test_a_store_that_is_a_folder(p):
    p.run("verdict", "list", "--store", p.folder).is_("usage", "this is a folder", "--store", "/journal.db")


def test_every_shipped_contract_tells_states_apart(p):
    found = p.run("library", "check", "--library", p.source / "library", "--json").is_("ok").json()
    held = {row["card"]: row for row in found["contracts"]}
    assert len(held) >= 31 and all(row["good"] and not row["faults"] for row in held.values()), [row for row in held.values() if not row["good"]]
    assert min(row["starts"] for row in held.values()) > 0 and min(row["results"] for row in held.values()) > 0
    assert found["labels"]["kernels"] > 200 and found["labels"]["precision"] >= 0.85 and found["labels"]["recall"] >= 0.85, found["labels"]
    assert min(row["foreign"] for row in held.values()) > 100, "the pool is the ladders, the lineages and the naive kernels"


def test_a_state_that_does_not_parse_has_the_facts_of_its_words(p):
    broken = p.folder / "broken.c"
    broken.write_text("//! launch gemm args(x\n#include <immintrin.h>\nvoid gemm(float *x) { x[0] = _mm_cvtss_f32(_mm_setzero_ps()); }\n")
    answer = p.run("kernel", "facts", broken, "--task", "gemm", "--json").is_("ok").json()
    assert answer["refusal"] and answer["state"]["op.contraction"] is True and answer["state"]["stage.vector"] is True, answer
    p.run("kernel", "facts", broken, "--task", "gemm").is_("ok", "does not parse")


def test_a_contract_that_cannot_be_asked_is_named(p):
    library = p.folder / "library"
    shutil.copytree(p.source / "library", library)
    path = library / "admitted/pack-b-c/evidence.json"
    evidence = json.loads(path.read_text())
    evidence["contract"]["requires"] += ["op.no_such_fact", "any(l: l.far >"]
    path.write_text(json.dumps(evidence))
    said = p.run("library", "check", "--library", library, "--starts", p.source / "experts").is_("no", "fails     pack-b-c", "op.no_such_fact: no fact is called so").out
    assert "tells     fma-simd-c" in said, said
    answer = p.run("retrieve", "gemm", p.source / "tasks/gemm/naive.c", "--library", library, "--platform", "x86-64-v4/gcc-12").is_("ok", "skipped pack-b-c")
    assert "fits     pack-b-c" in answer.out, "the clauses that can be asked decide"


def test_a_refusal_names_the_fact_and_its_line(p):
    answer = p.run("retrieve", "gemm", p.source / "experts/gemm/c/4-register-block.c", "--library", p.source / "library", "--all", "--top", "30", "--platform", "x86-64-v4/gcc-12")
    assert "refused, it needs tile.reuse < 1.2; tile.reuse is 1.714, line " in answer.out, answer.out
    assert "idea     " not in answer.out or "its code does not" in answer.out


def test_an_edited_card_is_named_where_it_is_left_out(p):
    library = p.folder / "library"
    shutil.copytree(p.source / "library", library)
    card = library / "admitted/fma-simd-c/SKILL.md"
    card.write_text(card.read_text().replace("## Intent", "## Intent\n\nSomething else.\n", 1))
    said = p.run("library", "check", "--library", library).is_("no", "1 edited by hand after admission", "klineage admit").out
    assert "0 unreadable" in said
    answer = p.run("retrieve", "softmax", p.source / "tasks/softmax/naive.c", "--library", library)
    assert "skipped fma-simd-c" in answer.out, str(answer)
    told = p.run("retrieve", "softmax", p.source / "tasks/softmax/naive.c", "--library", library, "--json").json()
    assert [row["card"] for row in told["left_out"]] == ["fma-simd-c"], told


def test_completion_knows_tasks_policies_models_and_workloads(p):
    script = p.write("klineage.bash", p.run("--generate", "complete-bash").out)
    body = f'compopt() {{ :; }}; source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _klineage; echo "${{COMPREPLY[*]}}"'

    def complete(*words):
        done = subprocess.run(["bash", "-c", body, "-", p.program, *words], env=p.env, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert complete("gate", "ge") == ["gemm"]
    assert complete("optimize", "--policy", "ada") == ["adaexplore"]
    assert complete("optimize", "--model", "anth") == ["anthropic:"]
    assert complete("gate", "gemm", "x.c", "--workload", "cpu-") == ["cpu-large"]
    for shell in ("zsh", "fish"):
        text = p.run("--generate", f"complete-{shell}").is_("ok").out
        assert "adaexplore" in text and "mailbox" in text, shell


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
