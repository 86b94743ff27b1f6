"""documents.py - what a command prints with --json follows its schema, and so does every line that it says beside it.

The schemas are docs/schema: a file a document that is kept, and commands.schema.json for the others.
SPDX-License-Identifier: Apache-2.0
"""
import functools
import json

try:
    import jsonschema
except ImportError:  # then the flows still run; on Debian: apt install python3-jsonschema
    jsonschema = None


@functools.cache
def schemas(source):
    """By the name in a document's "schema"."""
    files = {path.name: json.loads(path.read_text()) for path in (source / "docs/schema").glob("*.schema.json")}
    store = {schema["$id"]: schema for schema in files.values()}
    commands = files.pop("commands.schema.json")
    named = {name: {"$ref": f"{commands['$id']}#/$defs/{name}"} for name in commands["$defs"]}
    named.update({name.removesuffix(".schema.json"): schema for name, schema in files.items()})
    return named, store


def validate(source, document):
    kind = document.get("schema", "")
    named, store = schemas(source)
    assert kind.removeprefix("klineage/") in named, f"no schema in docs/schema for '{kind}'"
    if not jsonschema:
        return
    schema = named[kind.removeprefix("klineage/")]
    resolver = jsonschema.RefResolver(schema.get("$id", ""), schema, store=store)
    errors = list(jsonschema.Draft202012Validator(schema, resolver=resolver).iter_errors(document))
    assert not errors, f"{kind}: {errors[0].json_path}: {errors[0].message[:400]}"


def check(source, words, answer):
    """`words`: of the command.  Without --json, or where help was asked for, there is nothing to check."""
    if not {"--json", "--json-pretty"} & set(words) or {"help", "--generate", "--help", "-h"} & set(words):
        return
    for line in answer.err.splitlines():
        validate(source, json.loads(line))
    if answer.out:
        validate(source, json.loads(answer.out))
