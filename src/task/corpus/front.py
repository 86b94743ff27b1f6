"""front.py - the half of the funnel that only reads: files, candidates, licences, closures, duplicates, the held-out list.

What it finds of one source is kept in DIR/front, so that a run that goes on reads only what has changed.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import hashlib
import json
import multiprocessing
import os
import re
import signal

import alike
import confine
import scan
import sources
from closure import Refused, closed, dotted
from trial import RESERVED

VERSION = 2    # of what is kept in DIR/front


def held_out(path):
    """Operators and names that must not become tasks: one a line, `*` for any text; # begins a comment."""
    if not path:
        return []
    try:
        with open(path) as file:
            lines = [line.split("#")[0].strip() for line in file]
    except OSError as error:
        raise sources.Missing(f"{path}: {error.strerror}") from None
    return [re.compile("^" + ".*".join(map(re.escape, w.lower().split("*"))) + "$") for w in lines if w]


def is_held(patterns, *names):
    words = [n.lower() for n in names]
    return next((w for p in patterns for w in words if p.match(w)), "")


# ---- one candidate -------------------------------------------------------------------------------------------------------

def methods(modules, module, node, wanted, depth=0):
    """Its __init__ or forward as written, of itself or of a base in its package."""
    own = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == wanted), None)
    if own or depth > 6:
        return own
    for base in node.bases:
        found = dotted(base) and modules.lookup(module, dotted(base).split(".")[0])
        if found and isinstance(found[1], ast.ClassDef) and found[1] is not node:
            inner = methods(modules, found[0], found[1], wanted, depth + 1)
            if inner:
                return inner
    return None


def annotations(function):
    every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs] if function else []
    return {a.arg: ast.unparse(a.annotation) for a in every if a.annotation is not None}


def attributes(text):
    return sorted(set(re.findall(r"\b(?:config|cfg|args|conf|hparams)\.([a-z_]\w*)", text)))


PLAIN = "try:\n    from torch.nn.functional import {0}\nexcept ImportError:\n    from torch import {0}\n"


def triton_text(candidate):
    """The plain operator of torch of the same name, with the launcher's own parameters."""
    name = candidate.name.rstrip("_")
    a = candidate.node.args
    names = [x.arg for x in [*a.posonlyargs, *a.args]]
    n = len(names) - len(a.defaults)
    if not 0 < n < 6 or not name.isidentifier() or name in RESERVED:
        raise Refused("launches a Triton kernel and has no plain form", candidate.name)
    return PLAIN.format(name) + f"\n\ndef plain_{name}({', '.join(names[:n])}):\n    return {name}({', '.join(names[:n])})\n", f"plain_{name}"


def job_of(modules, candidate):
    """All that the second half needs; Refused where its closure cannot be had."""
    module, node = candidate.module, candidate.node
    if candidate.kind == "triton":
        text, name = triton_text(candidate)
    else:
        text, name, _ = closed(modules, module, candidate.name, RESERVED)
    source = modules.source
    said = {"__init__": annotations(methods(modules, module, node, "__init__")), "forward": annotations(methods(modules, module, node, "forward"))} \
        if candidate.kind == "module" else {name: annotations(node)}
    doc = (ast.get_docstring(node) or "").strip().split("\n\n")[0]
    return {"text": text, "name": name, "kind": candidate.kind, "annotations": said, "attributes": attributes(text), "doc": doc[:300],
            "experts": [f"{module.name}:{k}" for k in scan.kernels_of(module)] if candidate.kind == "triton" else []}


def of_source(word):
    """(rows, jobs, licence text): every candidate of a source and where the static half ends for it."""
    source = sources.opened(word)
    base = {"package": source.name, "version": source.version, "licence": source.licence or "unknown"}
    if not source.is_allowed:
        return [{**base, "id": source.name, "kind": "package", "stage": "licensed", "reason": "the licence is not one that allows it", "detail": source.licence or "none is said"}], [], ""
    modules, rows, jobs = sources.Modules(source), [], []
    for name, path in modules.paths.items():
        module = modules.find(name)
        if module is None:
            error = modules.by_name[name].error
            rows.append({**base, "id": name, "kind": "file", "file": os.path.relpath(path, source.root), "stage": "parsed", "reason": error.split(":")[0], "detail": error})
            continue
        rows.append({**base, "id": name, "kind": "file", "stage": "parsed", "reason": None, "file": os.path.relpath(path, source.root)})
        own = sources.licence_of_text("\n".join(line for line in module.text.splitlines()[:40] if line.startswith("#"))) if "icen" in module.text[:3000] else ""
        for candidate in scan.candidates(modules, module):
            row = {**base, "id": candidate.id, "kind": candidate.kind, "file": os.path.relpath(path, source.root), "line": candidate.node.lineno}
            if own and own not in sources.PERMISSIVE:
                rows.append({**row, "stage": "licensed", "reason": "the file's own licence is not one that allows it", "detail": own})
                continue
            try:
                jobs.append({**row, **job_of(modules, candidate)})
            except Refused as refusal:
                rows.append({**row, "stage": "closed", "reason": refusal.reason, "detail": refusal.detail})
            except RecursionError:
                rows.append({**row, "stage": "closed", "reason": "too deep to follow", "detail": ""})
    return rows, jobs, source.licence_text


def kept_of_source(task):
    """The same, from DIR/front if nothing has changed."""
    word, folder = task
    source = sources.opened(word)
    path = os.path.join(folder, re.sub(r"\W", "_", source.name) + ".json")
    stamp = f"{VERSION} {source.stamp()}"
    kept = loaded(path)
    if kept.get("stamp") != stamp:
        rows, jobs, text = of_source(word)
        kept = {"stamp": stamp, "name": source.name, "rows": rows, "jobs": jobs, "licence_text": text}
        stored(path, kept)
    return kept


def loaded(path):
    try:
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def stored(path, what):
    with open(path + ".new", "w") as file:
        json.dump(what, file)
    os.replace(path + ".new", path)


# ---- all of them ---------------------------------------------------------------------------------------------------------

def quiet_child():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    confine.with_parent()


def run(words, out, held, log, say, processes):
    """Jobs for the second half, in order; every candidate that ends before has its line."""
    folder = os.path.join(out, "front")
    os.makedirs(folder, exist_ok=True)
    minhash = alike.has_minhash()
    if not minhash:
        say.note("no package datasketch: near-duplicates are found by their trees alone; python3 -m pip install datasketch", "warning")
    path = os.path.join(folder, "alike.json")
    duplicates, jobs = alike.Duplicates(minhash, loaded(path)), []
    with multiprocessing.get_context("fork").Pool(processes, quiet_child) as pool:
        for i, kept in enumerate(pool.imap(kept_of_source, [(w, folder) for w in words])):
            say.line(f"read {i + 1} of {len(words)} sources: {kept['name']}: {len(kept['jobs'])} of {sum(r['kind'] != 'file' for r in kept['rows']) + len(kept['jobs'])} closed")
            log.rows(kept["rows"])
            log.licences[kept["name"]] = kept["licence_text"]
            for job in kept["jobs"]:
                jobs += [job] if passes(job, duplicates, held, log) else []
    stored(path, duplicates.known)
    return jobs


def there(words, say):
    """(the sources that are there, a row for each other)"""
    found, rows = [], []
    for word in words:
        try:
            sources.opened(word)
            found.append(word)
        except sources.Missing as missing:
            say.note(str(missing), "warning")
            rows.append({"id": word, "package": word, "version": "", "licence": "", "kind": "package", "stage": "parsed", "reason": "not found", "detail": str(missing)})
    if not found:
        raise sources.Missing("none of the sources is there", "klineage corpus FOLDER|PACKAGE... --out DIR")
    return found, rows


def row_of(job, **more):
    return {k: job[k] for k in ("id", "package", "version", "licence", "kind", "file", "line")} | more


def task_name(job):
    return re.sub(r"[^A-Za-z0-9_]+", "_", f"{job['package']}_{job['id'].split(':')[-1]}").strip("_").lower()[:70] + "_" + job["key"][:4]


def passes(job, duplicates, held, log):
    job["key"] = hashlib.sha256(f"{job['id']} {job['text']}".encode()).hexdigest()[:16]
    name = job["id"].split(":")[-1]
    other, how = duplicates.of(job["id"], job["text"])
    if other:
        log.row(row_of(job, stage="distinct", reason="a near-duplicate", detail=f"{other} ({how})"))
        return False
    if is_held(held, name, job["id"]):
        log.row(row_of(job, stage="kept", reason="held out", detail=name))
        log.forget(task_name(job))    # a run that was killed may have left it without a line
        return False
    return True
