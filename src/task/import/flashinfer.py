"""flashinfer.py - a FlashInfer-Trace definition with its workloads, and SOL-ExecBench's dialect of both.

SPDX-License-Identifier: Apache-2.0
"""
import json
import os

from declared import Declared, default_size
from problem import Refused

TITLE = "FlashInfer-Trace"
MOST_WORKLOADS = 4000    # beside those that are made here
MOST_COPIED = 64 << 20


def load(path):
    try:
        with open(path, errors="replace") as file:
            return json.load(file)
    except ValueError as error:
        raise Refused(f"{os.path.basename(path)}: {error}") from None


def path_of(place):
    return os.path.join(place, "definition.json") if os.path.isdir(place) else place


def is_one(place):
    path = path_of(place)
    if os.path.isdir(place):
        return os.path.isfile(path)
    if not path.endswith(".json") or not os.path.isfile(path):
        return False
    try:
        d = load(path)
    except Refused:
        return False
    return isinstance(d, dict) and all(isinstance(d.get(k), dict) for k in ("axes", "inputs", "outputs"))


def name_of(place, _source):
    try:
        return str(load(path_of(place)).get("name") or "") or os.path.basename(os.path.abspath(place))
    except (Refused, AttributeError):
        return os.path.basename(os.path.abspath(place))


def workloads_at(place):
    """Lines beside the definition, or in the layout of a data set."""
    path, stem = path_of(place), os.path.splitext(os.path.basename(place))[0]
    folder = os.path.dirname(os.path.abspath(path))
    beside = [os.path.join(folder, n) for n in ("workloads.jsonl", "workload.jsonl")] if os.path.basename(path) == "definition.json" else []
    for candidate in beside + [os.path.join(folder, "../../workloads", os.path.basename(folder), stem + ".jsonl")]:
        if os.path.isfile(candidate):
            with open(candidate, errors="replace") as file:
                return candidate, file.read().splitlines()
    return "", []


def wrong(body, d, seen):
    """Why a workload cannot be taken, or ''."""
    axes = body.get("axes")
    if not isinstance(axes, dict):
        return "it has no axes"
    for name, value in axes.items():
        if name not in d["axes"]:
            return f"`{name}` is no axis"
        if not isinstance(value, int) or value < 1:
            return f"axis {name} is {value}"
    missing = [n for n, a in d["axes"].items() if a.get("type") == "var" and n not in axes]
    if missing:
        return f"the size of {missing[0]} is missing"
    if not isinstance(body.get("uuid"), str):
        return "it has no uuid"
    return "it is there twice" if body["uuid"] in seen else ""


def blob_of(folder, path):
    return next((p for up in ("", "..", "../..", "../../..") if os.path.isfile(p := os.path.join(folder, up, path))), None)


def with_blobs(body, d, folder, notes):
    """Tensors of files that are not here are drawn instead, and that is said once."""
    inputs = {}
    for name, how in (body.get("inputs") or {}).items():
        if name not in d["inputs"]:
            continue
        if isinstance(how, dict) and how.get("type") == "safetensors" and not blob_of(folder, str(how.get("path"))):
            how = {"type": "random"}
            if not any("files" in n for n in notes):
                notes.append(f"tensors that its workloads keep in files which are not here are drawn instead: {name}")
        inputs[name] = how
    return inputs


def lines_of(place, d, skipped, notes):
    path, lines = workloads_at(place)
    good, seen = [], set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            whole = json.loads(line)
            body = whole.get("workload") or whole
            why = wrong(body, d, seen)
            if whole.get("definition", d["name"]) != d["name"]:
                why = f"it is of {whole['definition']}"
        except (ValueError, AttributeError):
            why = "it is no JSON object"
        if why or len(good) >= MOST_WORKLOADS:
            skipped.append(f"{os.path.basename(path)}:{number}: {why or 'more than %d workloads' % MOST_WORKLOADS}")
            continue
        seen.add(body["uuid"])
        inputs = with_blobs(body, d, os.path.dirname(path), notes)
        ours = {"klineage": body["klineage"]} if isinstance(body.get("klineage"), dict) else {}
        tolerance = {"tolerance": body["tolerance"]} if isinstance(body.get("tolerance"), dict) else {}
        good.append({"uuid": body["uuid"], "axes": body["axes"], "inputs": inputs, **tolerance, **ours})
    return good


def read(place, _inputs):
    d = load(path_of(place))
    for key in ("axes", "inputs", "outputs"):
        if not isinstance(d, dict) or not isinstance(d.get(key), dict):
            raise Refused(f"the definition has no {key}")
    if not d.get("reference"):
        raise Refused("the definition has no reference, so there is no oracle")
    skipped, notes = [], []
    lines = lines_of(place, d, skipped, notes)
    t = Declared(d, TITLE)
    t.p.skipped, t.p.notes = skipped, notes + t.p.notes
    files = [h for line in lines for h in line["inputs"].values() if h.get("type") == "safetensors"]
    for how in files:
        source = blob_of(os.path.dirname(os.path.abspath(path_of(place))), how["path"])
        if source and os.path.getsize(source) <= MOST_COPIED:
            t.p.blobs[how["path"]] = source
    t.scalars = {n: h["value"] for line in lines[:1] for n, h in line["inputs"].items() if h.get("type") == "scalar"}
    sizes = [w["axes"] for w in lines]
    biggest = max(sizes, key=lambda a: sum(a.values()), default={})
    real = {n: biggest.get(n, default_size(n)) for n in t.free}
    return t.problem(real, lines)
