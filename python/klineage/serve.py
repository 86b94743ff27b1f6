"""The commands as tools of the Model Context Protocol, made of the program's own table.

A call runs the program once and answers with what it prints with --json; what it says on stderr meanwhile is
progress.  A client that cancels sends it ^C, so what was paid and measured is kept.  SPDX-License-Identifier: Apache-2.0"""
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress

from klineage import program

try:
    import anyio
    from mcp import MCPError, types
    from mcp.server import Server
    from mcp.server.stdio import stdio_server
except ImportError as error:
    print(f"klineage: error: serve: {sys.executable} has no package mcp ({error})\n"
          "hint: python3 -m pip install mcp, or name another Python in KLINEAGE_PYTHON", file=sys.stderr)
    sys.exit(7)

NOT_TOOLS = {"serve", "help", "doctor", "capture"}  # the last runs any program, in no sandbox
GRACE_S = 20  # a model's reply that is under way, a kernel that is being timed
MOST_NAMED = 200

# ---- schemas ---------------------------------------------------------------------------------------------------

KINDS = {"flag": {"type": "boolean"}, "text": {"type": "string"}, "number": {"type": "integer", "minimum": 0},
         "repeat": {"type": "array", "items": {"type": "string"}}, "maybe": {"type": ["boolean", "integer"]}}


def property_of(option):
    if option["kind"] == "choice":
        return {"enum": option["value"].split("|"), "description": option["doc"]}
    meant = f"{option['value']}: " if option["value"] else ""
    return {**KINDS[option["kind"]], "description": meant + option["doc"]}


def positional(command):
    """The words of the usage, by name: `[TASK] KERNEL...` is task, kernel."""
    return [word.strip("[].").lower().replace("-", "_") for word in command["usage"].split()]


def input_schema(command):
    words, most = positional(command), command["most"]
    properties = {w: {"type": "string", "description": f"{w.upper()} of the usage"} for w in words}
    if words and most != len(words):
        properties[words[-1]] = {"type": "array", "items": {"type": "string"}, "description": f"one or more of {words[-1].upper()}"}
    for option in command["options"]:
        name = option["name"].replace("-", "_")
        properties[name if name not in words else name + "_option"] = property_of(option)
    return {"type": "object", "properties": properties, "required": words[:command["least"]], "additionalProperties": False}


RECORDS = {"gate": "verdict", "verdict_show": "verdict", "lineage_show": "lineage"}


def tools():
    return [types.Tool(name=name, title=f"klineage {c['words']}", description=f"{c['summary']}\n\n{c['text']}",
                       input_schema=input_schema(c), output_schema=program.schema(RECORDS[name]) if name in RECORDS else None)
            for name, c in program.names().items() if name not in NOT_TOOLS]


# ---- one call ---------------------------------------------------------------------------------------------------

def shell_words(name, given):
    """The call as the program reads it."""
    command, words, options = program.names()[name], [], dict(given or {})
    for key in positional(command):
        value = options.pop(key, [])
        words += value if isinstance(value, list) else [value]
    return program.arguments(name, words, {k.removesuffix("_option"): v for k, v in options.items()})


def text_of(line):
    """What a message says that the program printed for other programs."""
    with suppress(ValueError, AttributeError):
        return json.loads(line).get("text", line)
    return line


async def follow(stream, said, report):
    """Lines of stderr, each as one message of progress."""
    rest, n = "", 0
    async for chunk in stream:
        *lines, rest = (rest + chunk.decode(errors="replace")).replace("\r", "\n").split("\n")
        for line in filter(None, map(str.strip, lines)):
            said.append(line)
            n += 1
            await report(n, text_of(line))
    said.append(rest)


async def collect(stream, chunks):
    async for chunk in stream:
        chunks.append(chunk)


async def end(process):
    """^C; what does not end then is killed."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
        with anyio.move_on_after(GRACE_S):
            await process.wait()
            return
        process.kill()


async def call(argv, report):
    """Status and text of one run.  Cancelled with its request."""
    out, said = [], []
    process = await anyio.open_process(argv, stdin=subprocess.DEVNULL, env=dict(os.environ, KLINEAGE_PROGRESS="1"), start_new_session=True)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(collect, process.stdout, out)
            group.start_soon(follow, process.stderr, said, report)
        return await process.wait(), b"".join(out).decode(), "\n".join(said)
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                await end(process)


async def answer(name, given, report):
    try:
        argv = shell_words(name, given)
        found = program.answer(*await call(argv, report))
    except program.Failed as failed:
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(failed))], is_error=True)
    text = types.TextContent(type="text", text=json.dumps(found, indent=1))
    return types.CallToolResult(content=[text], structured_content=found)


# ---- resources ---------------------------------------------------------------------------------------------------

SHOWN = {"task": ("task_show", "axes, tensors, checks and shapes of a task"), "card": ("card_show", "one SkillCard with its evidence"),
         "verdict": ("verdict_show", "one journaled verdict with all its evidence")}
LISTS = {"task": ("task_list", "tasks", "name"), "card": ("library_list", "cards", "name"), "verdict": ("verdict_list", "verdicts", "key")}


def named(kind):
    command, rows, key = LISTS[kind]
    with suppress(program.Failed):
        for row in program.run(command).get(rows, [])[:MOST_NAMED]:
            title = row.get("description") or f"{row.get('task', '')} {row.get('outcome', '')}"
            yield types.Resource(uri=f"klineage://{kind}/{row[key]}", name=str(row[key]), description=title.strip(), mime_type="application/json")


def resource(uri):
    kind, _, name = uri.removeprefix("klineage://").partition("/")
    if kind not in SHOWN or not name:
        raise program.Failed(2, f"{uri} is no resource of klineage", f"klineage://{{{'|'.join(SHOWN)}}}/NAME")
    return json.dumps(program.run(SHOWN[kind][0], name), indent=1)


# ---- the server ---------------------------------------------------------------------------------------------------

async def on_list_tools(_context, _params):
    return types.ListToolsResult(tools=tools())


async def on_call_tool(context, params):
    async def report(n, line):
        with suppress(Exception):  # a client that asked for none, or is gone
            await context.session.report_progress(float(n), message=line)
    if params.name not in program.names() or params.name in NOT_TOOLS:
        return types.CallToolResult(content=[types.TextContent(type="text", text=f"klineage has no tool {params.name}")], is_error=True)
    return await answer(params.name, params.arguments, report)


async def on_list_resources(_context, _params):
    found = await anyio.to_thread.run_sync(lambda: [r for kind in LISTS for r in named(kind)])
    return types.ListResourcesResult(resources=found)


async def on_list_templates(_context, _params):
    return types.ListResourceTemplatesResult(resource_templates=[
        types.ResourceTemplate(uri_template=f"klineage://{kind}/{{name}}", name=kind, description=what, mime_type="application/json")
        for kind, (_, what) in SHOWN.items()])


async def on_read_resource(_context, params):
    try:
        text = await anyio.to_thread.run_sync(resource, str(params.uri))
    except program.Failed as failed:
        raise MCPError(types.INVALID_PARAMS, str(failed)) from None
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)])


def server():
    return Server("klineage", version=program.table()["klineage"],
                  instructions="A referee for compute kernels: gate judges one file with launch directives; task_list and task_show say "
                               "what to compute. A wrong or slow kernel is a result, not an error.",
                  on_list_tools=on_list_tools, on_call_tool=on_call_tool, on_list_resources=on_list_resources,
                  on_list_resource_templates=on_list_templates, on_read_resource=on_read_resource)


async def serve_stdio():
    async with stdio_server() as (read, write):
        here = server()
        await here.run(read, write, here.create_initialization_options())


def listening(port):
    """Bound by us, since uvicorn's exit status for a port that is taken is one of the gate's."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError as error:
        print(f"klineage: error: serve: cannot listen at 127.0.0.1:{port}: {error.strerror}\n"
              "hint: name another port with --port, or end what listens there", file=sys.stderr)
        sys.exit(2)
    return listener


def main():
    if len(sys.argv) > 1:
        listener = listening(int(sys.argv[1]))
        import uvicorn
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(server().streamable_http_app(), log_level="warning")).run(sockets=[listener])
    else:
        anyio.run(serve_stdio)


if __name__ == "__main__":
    main()
