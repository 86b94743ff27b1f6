#!/usr/bin/env python3
"""agent.py - a coding agent's side of `klineage serve`: connects as told, makes the calls, prints what came back as JSON.

usage: agent.py mcp|fastmcp stdio|URL KLINEAGE < CALLS     CALLS: a list of [method, arguments...]

Two clients, each from PyPI: that of the protocol's own package, and fastmcp.  SPDX-License-Identifier: Apache-2.0"""
import asyncio
import json
import os
import sys
import time


def plain(result):
    return {"error": bool(getattr(result, "is_error", False)), "json": result.structured_content,
            "text": "".join(getattr(c, "text", "") for c in result.content)}


class Mcp:
    def __init__(self, where, program):
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client
        how = StdioServerParameters(command=program, args=["serve", "--mcp"], env=dict(os.environ))
        self.client = Client(stdio_client(how) if where == "stdio" else where)

    async def revision(self):
        return self.client.protocol_version

    async def tools(self):
        return {t.name: t.input_schema for t in (await self.client.list_tools()).tools}

    async def call(self, name, arguments):
        said = []

        async def heard(_progress, _total, message):
            said.append(message)
        return {**plain(await self.client.call_tool(name, arguments, progress_callback=heard)), "progress": said}

    async def resources(self):
        return [str(r.uri) for r in (await self.client.list_resources()).resources]

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents[0].text

    async def refused(self, uri):
        try:
            return {"code": 0, "text": await self.read(uri)}
        except Exception as error:  # each client raises one of its own
            return {"code": getattr(error, "code", None) or getattr(getattr(error, "error", None), "code", None), "text": str(error)}


class FastMcp(Mcp):
    def __init__(self, where, program):
        from fastmcp import Client
        from fastmcp.client.transports import StdioTransport
        self.client = Client(StdioTransport(program, ["serve", "--mcp"], env=dict(os.environ)) if where == "stdio" else where)

    async def revision(self):
        return self.client.initialize_result.protocolVersion

    async def tools(self):
        return {t.name: getattr(t, "input_schema", None) or t.inputSchema for t in await self.client.list_tools()}

    async def call(self, name, arguments):
        said = []

        async def heard(_progress, _total, message):
            said.append(message)
        return {**plain(await self.client.call_tool(name, arguments, progress_handler=heard, raise_on_error=False)), "progress": said}

    async def resources(self):
        return [str(r.uri) for r in await self.client.list_resources()]

    async def read(self, uri):
        return (await self.client.read_resource(uri))[0].text


async def abandoned(agent, seconds, name, arguments):
    """A call whose client loses patience; how long until it is rid of it."""
    begin = time.time()
    try:
        await asyncio.wait_for(agent.call(name, arguments), seconds)
        return {"ended": True}
    except asyncio.TimeoutError:
        return {"ended": False, "seconds": time.time() - begin}


async def main():
    which, where, program = sys.argv[1:]
    agent = {"mcp": Mcp, "fastmcp": FastMcp}[which](where, program)
    found = []
    async with agent.client:
        for method, *arguments in json.load(sys.stdin):
            if method == "sleep":
                await asyncio.sleep(*arguments)
            elif method == "abandoned":
                found.append(await abandoned(agent, *arguments))
            else:
                found.append(await getattr(agent, method)(*arguments))
    print(json.dumps(found))


asyncio.run(main())
