#!/usr/bin/env python3
"""serve_flow.py - `klineage serve` as coding agents meet it: two clients, two transports, mistakes; and the Python package.

usage: as flow.py.  Needs what `./run setup agents` installs (the package mcp, and fastmcp in build/agent), and is skipped without it.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

import flow
from flow import alone

AGENT = pathlib.Path(__file__).parent / "agent.py"
CLIENTS = ("mcp", "fastmcp")
TINY = {"workload": "M=16,N=16,K=16", "no_journal": True}


def python(p, package="mcp"):
    """One that has the package."""
    own = p.source / ("build/python" if package == "mcp" else "build/agent") / "bin/python3"
    named = os.environ.get("KLINEAGE_PYTHON") if package == "mcp" else None
    for chosen in (named, str(own), "python3"):
        if chosen and subprocess.run(["env", chosen, "-c", f"import {package}"], capture_output=True).returncode == 0:
            return chosen
    raise flow.Skip(f"no package {package}: ./run setup agents")


def ask(p, *calls, client="mcp", where="stdio", limit=120):
    """What each call came back with."""
    chosen = python(p)
    done = subprocess.run([python(p, client), "-B", str(AGENT), client, where, p.program], input=json.dumps(calls), text=True, timeout=limit,
                          env={**p.env, "KLINEAGE_PYTHON": chosen}, cwd=p.folder, capture_output=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_page_names_what_is_no_tool(p):
    """`capture` runs any program, so it must not be one."""
    tools, refused = ask(p, ["tools"], ["call", "capture", {"program": "true"}])
    said = re.search(r"Each command of .*? but (.*?)\s+is a\s+tool", (p.source / "docs/how-to/agents.md").read_text(), re.S)[1]
    every = {c["words"].replace(" ", "_") for c in p.run("--generate", "commands").is_("ok").json()["commands"]}
    assert every - set(tools) == set(re.findall(r"`(\w+)`", said)) == {"serve", "help", "doctor", "capture"}, (every - set(tools), said)
    assert refused["error"] and "no tool capture" in refused["text"], refused


def test_every_command_is_a_tool_and_tasks_are_resources_for_both_clients(p):
    for client in CLIENTS:
        tools, uris, task = ask(p, ["tools"], ["resources"], ["read", "klineage://task/gemm"], client=client)
        assert {"gate", "task_list", "optimize", "kernel_facts", "retrieve"} <= set(tools) and "serve" not in tools, tools
        gate = tools["gate"]
        assert gate["required"] == ["task", "kernel"] and gate["additionalProperties"] is False, gate
        assert gate["properties"]["check_only"]["type"] == "boolean" and gate["properties"]["param"]["type"] == "array", gate
        assert gate["properties"]["require_assurance"]["enum"] == ["A", "B"], gate
        assert tools["kernel_facts"]["properties"]["task"]["type"] == "string", tools["kernel_facts"]
        assert "klineage://task/gemm" in uris and json.loads(task)["name"] == "gemm", (uris, task)


def test_a_resource_that_is_not_there_is_an_error_with_its_reason(p):
    for uri, why in (("klineage://task/nothing", "nothing"), ("klineage://secret/gemm", "klineage://{task|card|verdict}/NAME")):
        said, = ask(p, ["refused", uri])
        assert said["code"] == -32602 and why in said["text"], said


def test_each_revision_of_the_protocol_is_spoken(p):
    assert [ask(p, ["revision"], client=client) for client in CLIENTS] == [["2026-07-28"], ["2025-11-25"]]
    offered = {r: r for r in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")} | dict.fromkeys(("1999-01-01", "2026-07-28"), "2025-11-25")
    for asked, said in offered.items():    # others: the newest that begins so
        begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
                 "params": {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "by hand", "version": "1"}}}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "task_show", "arguments": {"task": "gemm"}}}
        server = subprocess.Popen([p.program, "serve", "--mcp"], env={**p.env, "KLINEAGE_PYTHON": python(p)}, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in (begin, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call):
            server.stdin.write(json.dumps(line) + "\n")
        server.stdin.flush()
        first, second = json.loads(server.stdout.readline()), json.loads(server.stdout.readline())
        server.stdin.close()
        assert server.wait(30) == 0 and first["result"]["protocolVersion"] == said, first
        assert second["result"]["structuredContent"]["name"] == "gemm", second


@alone
def test_a_verdict_comes_back_as_json_with_progress_before_it(p):
    for client in CLIENTS:
        found, = ask(p, ["call", "gate", {"task": "gemm", "kernel": p.naive, **TINY}], client=client)
        assert not found["error"] and found["json"]["outcome"] in ("pass", "unstable"), found
        assert json.loads(found["text"]) == found["json"]
        assert any("compile" in line for line in found["progress"]), found["progress"]


def test_a_wrong_kernel_is_a_result_and_a_wrong_call_an_error(p):
    bad = p.write("bad.c", pathlib.Path(p.naive).read_text().replace("+=", "-="))
    wrong, no_task, no_option, no_tool = ask(
        p, ["call", "gate", {"task": "gemm", "kernel": bad, "check_only": True, **TINY}],
        ["call", "task_show", {"task": "gemn"}], ["call", "task_list", {"nonsense": 1}], ["call", "nonsense", {}])
    assert not wrong["error"] and wrong["json"]["outcome"] == "wrong", wrong
    assert no_task["error"] and "no such task" in no_task["text"] and "hint: " in no_task["text"], no_task
    assert no_option["error"] and "has no option --nonsense" in no_option["text"], no_option
    assert no_tool["error"] and "no tool nonsense" in no_tool["text"], no_tool


def test_an_argument_is_never_an_option_of_a_shell(p):
    found, = ask(p, ["call", "task_show", {"task": "--version"}])
    assert found["error"] and "--version" in found["text"] or "no such task" in found["text"], found


def running(text):
    found = subprocess.run(["pgrep", "-f", text], capture_output=True, text=True).stdout.split()
    return [pid for pid in found if int(pid) != os.getpid()]


def test_a_call_that_is_cancelled_ends_its_program(p):
    slow = p.write("slow.c", "//! launch gemm args(x, weight, y, M, N, K)\n#include <stdint.h>\n"
                   "void gemm(const kl_t_x *x, const kl_t_weight *w, kl_t_y *y, int32_t M, int32_t N, int32_t K)"
                   "{ volatile int on = 1; while (on) { } (void)x; (void)w; (void)y; (void)M; (void)N; (void)K; }\n")
    found, = ask(p, ["abandoned", 2, "gate", {"task": "gemm", "kernel": slow, **TINY}])
    assert not found["ended"] and found["seconds"] < 4, found
    until = time.time() + 30
    while running(slow) and time.time() < until:
        time.sleep(0.2)
    assert not running(slow)


def test_over_http_for_several_clients(p):
    chosen = python(p)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = subprocess.Popen([p.program, "serve", "--mcp", "--port", str(port)], env={**p.env, "KLINEAGE_PYTHON": chosen},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        until = time.time() + 30
        while time.time() < until and server.poll() is None:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        assert server.poll() is None, server.communicate()
        for client in CLIENTS:
            found, = ask(p, ["call", "task_show", {"task": "gemm"}], client=client, where=f"http://127.0.0.1:{port}/mcp")
            assert found["json"]["name"] == "gemm", found
    finally:
        server.terminate()
        server.communicate(timeout=20)


def test_where_it_cannot_serve_is_said_in_one_line(p):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        answer = p.run("serve", "--mcp", "--port", port, env={"KLINEAGE_PYTHON": python(p)}, limit=120)
        answer.is_("usage", f"cannot listen at 127.0.0.1:{port}", "in use", "hint: name another port")
        assert len(answer.err.splitlines()) == 2, answer.err


def test_options_that_would_be_left_out_are_refused(p):
    for port in ("0", "99999"):
        p.run("serve", "--mcp", "--port", port).is_("usage", "--port must be from 1 to 65535")
    p.run("serve", "--mcp", "--listen", "127.0.0.1:9").is_("usage", "--mcp has no --listen", "--port N")
    p.run("serve", "--mcp", "--tokens", "x").is_("usage", "--mcp has no --tokens", "--reward")
    p.run("serve", "--reward", "--port", "9").is_("usage", "--reward has no --port", "--listen 127.0.0.1:9")


def test_without_the_package_mcp(p):
    (p.folder / "mcp.py").write_text("raise ImportError('not here')\n")
    p.run("serve", "--mcp", env={"PYTHONPATH": str(p.folder)}).is_("no_device", "has no package mcp", "python3 -m pip install mcp")


@alone
def test_a_client_makes_a_kernel_faster(p):
    """From a task's page to a kernel in a file, with nothing but tools: the model is one that needs no key."""
    for client in CLIENTS:
        best, shape = str(p.folder / f"{client}.c"), {"workload": "M=96,N=96,K=96", "quick": True}
        tasks, facts, found, = ask(
            p, ["call", "task_list", {}], ["call", "kernel_facts", {"kernel": p.naive, "task": "gemm"}],
            ["call", "optimize", {"task": "gemm", "kernel": p.naive, "model": "mutate:1", "max_steps": 3, "policy": "generate", "out": best, **shape}],
            client=client, limit=250)
        assert "gemm" in tasks["text"] and not facts["error"], (tasks, facts)
        assert not found["error"] and found["json"]["schema"] == "klineage/optimized", found
        track, = found["json"]["tracks"]
        assert track["proposals"] == 3 and track["spent_microusd"] == 0, found
        assert found["progress"] or client != CLIENTS[0], found    # the same search again is answered from the journal at once
        verdict, report = ask(p, ["call", "gate", {"task": "gemm", "kernel": best, "check_only": True, **shape}],
                              ["call", "report", {"run": [found["json"]["run"]], "out": f"{best}.html"}], client=client)
        # One text has one verdict, which names the file that it was first asked for.
        assert verdict["json"]["outcome"] == "pass" and verdict["json"]["kernel"]["path"] in (best, str(p.folder / f"{CLIENTS[0]}.c")), verdict
        assert not report["error"] and (p.folder / f"{client}.c.html").stat().st_size > 10000, report


def test_mistakes_at_the_shell(p):
    p.run("serve").is_("usage", "by which protocol?", "klineage serve --mcp")
    p.run("serve", "--mcp", env={"KLINEAGE_PYTHON": "/nonexistent/python"}).is_("no_device", "no Python to serve with")
    bare = subprocess.run([sys.executable, "-c", "import mcp"], capture_output=True)
    if bare.returncode:
        assert "pip install mcp" in p.run("serve", "--mcp", env={"KLINEAGE_PYTHON": sys.executable}).err


# ---- the Python package, which needs nothing from PyPI ---------------------------------------------------------

def said_by(p, text):
    env = {**p.env, "PYTHONPATH": str(p.source / "python"), "KLINEAGE_PROGRAM": p.program}
    return subprocess.run([sys.executable, "-B", "-c", text], env=env, cwd=p.folder, capture_output=True, text=True, timeout=100)


@alone
def test_python_has_verdicts_as_dataclasses(p):
    done = said_by(p, "import klineage\n"
                   f"v = klineage.gate('gemm', {p.naive!r}, workload='M=16,N=16,K=16', baseline='none')\n"
                   "print(v.outcome, v.task, v.median_ns > 0, len(v.comparisons), v.json['schema'])")
    assert done.stdout.split()[:1] in (["pass"], ["unstable"]) and "gemm True 1 klineage/verdict" in done.stdout, done


def test_python_has_every_command_and_says_what_is_wrong(p):
    done = said_by(p, "import klineage\n"
                   "print(klineage.task_show('gemm')['name'], 'axes' in klineage.task_show.__doc__)\n"
                   "try: klineage.task_show('gemn')\n"
                   "except klineage.Failed as f: print(f.status, f.message, '|', f.hint)\n"
                   "try: klineage.gate('gemm', 'x.c', nonsense=1)\n"
                   "except klineage.Failed as f: print(f.status, f.message)\n"
                   "try: klineage.nonsense\n"
                   "except AttributeError as e: print(e)\n")
    assert done.stdout.startswith("gemm True\n2 gemn: no such task | "), done
    assert "has no option --nonsense" in done.stdout and "klineage has no command 'nonsense'" in done.stdout, done


TASK_OF = """
import klineage
from klineage.task import place_of, spoken

class Tensor:
    dtype = "torch.float32"
    def __init__(self, *shape): self.shape = shape

def scaled(x, w, factor=2.0): ...

print(spoken(scaled, (Tensor(4, 8), Tensor(8, 1)), {"factor": 0.5}))
for given in (lambda x: x, scaled.__get__(1), Tensor(1), scaled):
    try: print(place_of(given))
    except klineage.Failed as f: print(f.status, f.message)
try: spoken(scaled, (), {})
except klineage.Failed as f: print(f.message)
"""


def test_python_says_what_a_function_takes(p):
    done = said_by(p, TASK_OF)
    said = done.stdout.splitlines()
    assert said[0] == "x: float32[n0=4,n1=8], w: float32[n1,1], factor: 0.5", done
    assert said[1:4] == [f"2 {name} is no function at the top of a file" for name in ("<lambda>", "scaled", "Tensor")], done
    assert len(said) == 6 and "missing a required argument" in said[5], done


DECORATED = """import torch, klineage


@klineage.optimize
def scaled(x, s):
    calls.append(1)
    return torch.relu(x) * s


calls = []
"""
STAND_IN = """class Refused(ValueError): pass
def scaled(x, s):
    if x.shape[0] > 4: raise Refused(3, "not checked there")
    return "the kernel"
"""


def torch_python(p, least=(1, 0)):
    chosen = os.environ.get("KLINEAGE_PYTHON") or sys.executable
    asked = "import re, torch; print(*re.findall(r'\\d+', torch.__version__)[:2])"
    said = subprocess.run([chosen, "-c", asked], capture_output=True, text=True).stdout.split()
    if tuple(map(int, said)) < least or not said:
        raise flow.Skip(f"no Python with torch {'.'.join(map(str, least))} in KLINEAGE_PYTHON")
    return chosen


def used(p, chosen, text):
    (p.folder / "ops.py").write_text(DECORATED)
    env = {**p.env, "PYTHONPATH": str(p.source / "python"), "KLINEAGE_PROGRAM": p.program, "KLINEAGE_PYTHON": chosen}
    done = subprocess.run([chosen, "-B", "-c", "import klineage, ops, torch\nf = ops.scaled\n" + text], env=env, cwd=p.folder, capture_output=True, text=True,
                          timeout=250)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


UNDECORATED = """from klineage.plain import undecorated
for line in ("import torch, klineage", "import klineage as k; import torch", "import torch\\nif True:\\n    from klineage import (optimize,\\n        gate)"):
    name = "k.optimize" if " as k" in line else "optimize" if "from" in line else "klineage.optimize"
    text = undecorated(f"'é'\\n{line}\\n@{name}(kernels='x')\\n@torch.no_grad()\\ndef f(x):\\n    return torch.relu(x)\\n")
    compile(text, "f", "exec")
    print(text.count("\\n") - line.count("\\n"), "klineage" in text, "optimize" in text, "import torch" in text, "@torch.no_grad()" in text)
"""


def test_the_text_of_a_decorated_function_stays_in_its_lines(p):
    done = said_by(p, UNDECORATED)
    assert done.stdout.splitlines() == ["6 False False True True"] * 3, done


def test_a_decorated_function_is_itself_until_there_is_a_kernel(p):
    chosen = torch_python(p)
    said = used(p, chosen, "print(f.folder)\nx, s = torch.ones(4, 2), torch.ones(2)\nprint(f(x, s).sum().item(), len(ops.calls), f.kernel, f.__name__)")
    assert said[1] == "8.0 1 None scaled", said
    export = pathlib.Path(said[0]) / "export"    # a package with the face that `export --as torch` gives
    (export / "scaled").mkdir(parents=True)
    (export / "scaled/__init__.py").write_text(STAND_IN)
    (export / "provenance.json").write_text('{"name": "scaled"}')
    said = used(p, chosen, "x, s = torch.ones(4, 2), torch.ones(2)\nprint(f(x, s), f(x, s), len(ops.calls))\n"
                           "print(f(torch.ones(8, 2), s).sum().item(), f(x=x, s=s).sum().item(), f(x.requires_grad_(), s).requires_grad, len(ops.calls))")
    assert said == ["the kernel the kernel 0", "16.0 8.0 True 3"], said
    changed = DECORATED.replace("* s", "- s")
    said = used(p, chosen, f"open('ops2.py', 'w').write({changed!r})\nimport ops2\nprint(ops2.scaled(torch.ones(4, 2), torch.ones(2)).sum().item())")
    assert said == ["0.0"], "a kernel of another text was taken"


@alone
def test_a_decorated_function_is_optimized_by_an_explicit_call(p):
    chosen = torch_python(p)
    said = used(p, chosen, "x, s = torch.ones(64, 32), torch.ones(32)\n"
                           "said = f.optimize((x, s), model='mutate:1', policy='generate', max_steps=1, quick=True)\n"
                           "print(said['schema'], said['tracks'][0]['call'] == 'faster', f.found is not None, ops.calls)")
    schema, faster, found, calls = said[-1].split(" ", 3)
    assert schema == "klineage/optimized" and faster == found and calls == "[]", said


def test_a_decorated_function_calls_what_was_exported(p):
    chosen = torch_python(p, (2, 4))
    folder = pathlib.Path(used(p, chosen, "print(f.folder)")[0])
    env = {"KLINEAGE_PYTHON": chosen}
    plain = p.write("plain.py", "import torch\ndef scaled(x, s):\n    return torch.relu(x) * s\n")
    p.run("task", "import", f"{plain}:scaled", "--inputs", "x: float32[a=64,b=32], s: float32[b]", "--out", "task", env=env, limit=200).is_("ok")
    p.run("gate", "task", "task/naive.c", "--check-only", env=env, limit=200).is_("ok")
    p.run("export", "task/naive.c", "--task", "task", "--as", "torch", "--out", folder / "export", env=env).is_("ok")
    said = used(p, chosen, "x, s = torch.randn(64, 32), torch.randn(32)\nprint(torch.allclose(f(x, s), torch.relu(x) * s), ops.calls, f.kernel is not None)\n"
                           "print(f(x.double(), s.double()).dtype, len(ops.calls))")
    assert said == ["True [] True", "torch.float64 1"], said


def test_long_a_wheel_gates_a_kernel_in_an_empty_environment(p):
    made = subprocess.run(["./run", "wheel"], cwd=p.source, capture_output=True, text=True, timeout=280)
    if made.returncode:
        raise flow.Skip(f"no wheel could be built (pip, the network?): {made.stderr[-300:]}")
    place = p.folder / "empty"
    subprocess.run([sys.executable, "-m", "venv", place], check=True, timeout=100)
    subprocess.run([place / "bin/pip", "install", "--quiet", "--no-index", made.stdout.split()[-1]], check=True, cwd=p.source, timeout=100)
    bare = {"HOME": str(p.folder), "PATH": "/usr/bin:/bin"}
    listed = subprocess.run([place / "bin/klineage", "task", "list"], env=bare, capture_output=True, text=True, timeout=50)
    assert "gemm" in listed.stdout, listed
    text = ("import klineage\n"
            "naive = klineage.task_show('gemm')['path'] + '/naive.c'\n"
            "assert '/empty/' in naive, naive\n"
            "print(klineage.gate('gemm', naive, workload='M=16,N=16,K=16', baseline='none').outcome)")
    done = subprocess.run([place / "bin/python", "-c", text], env=bare, capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() in ("pass", "unstable"), done


def main():
    flow.tests = lambda: {name[5:]: f for name, f in globals().items() if name.startswith("test_")}
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
