#!/usr/bin/env python3
"""The held-out instances, each by the best of FlagGems' own kernels over FlagGems' own configurations, judged by the gate.

    bench/flaggems.py FOLDER [--bin build/bin/klineage] [--arch sm_90a] [--spool DIR] [--only TASK] [--recipes FILE] [--check]

What is taken for which instance says bench/experiments/flaggems.yaml.  $KLINEAGE_PYTHON has triton and the package; nothing
of it is imported, and no text of it leaves FOLDER, which is not for a repository.  Each kernel is taken out into
FOLDER/KERNEL.py and completed by its recipe.  Every configuration of its autotuner gets a quick verdict, and the fastest of an
instance a full one beside all baselines of the task, kept as FOLDER/TASK.WORKLOAD.json.  With --spool the work goes to another
host: exit status 11 says that verdicts are missing; run the worker there, then this again.  --check compiles each kernel for
each instance and judges nothing.  Prints one JSON object.  SPDX-License-Identifier: Apache-2.0"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
EXTRACT = ROOT / "src/surface/triton/extract"
RECIPES = ROOT / "bench/experiments/flaggems.yaml"
PENDING = 11
OPTIONS = {"num_warps": "WARPS", "num_stages": "STAGES"}
HEAD = r"(?m)^#(!| ) +(buffer|launch|let|require|tensormap) .*\n"
# Run by $KLINEAGE_PYTHON, where the package is.
CONFIGURATIONS = """
import importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
spec = importlib.util.spec_from_file_location("extract", sys.argv[1] + "/__main__.py")
extract = importlib.util.module_from_spec(spec)
spec.loader.exec_module(extract)
import draft, evaluator, source
place, _, name = sys.argv[2].rpartition(":")
modules = source.Modules()
e = evaluator.Evaluator(modules, int(sys.argv[3]))
kernel = extract.kernel_of(modules.find(place), name, e)
print(json.dumps([c | c.options for c in draft.Choice(e, kernel.module, kernel.node).configs]))
"""


def run(options, *words):
    return subprocess.run([options.bin, *map(str, words)], capture_output=True, text=True, cwd=ROOT)


def completed(text, recipe):
    """The extracted file with what its recipe says instead of the draft."""
    for old, new in recipe.get("replace", {}).items():
        if text.count(old) != 1:
            raise ValueError(f"{old!r} occurs {text.count(old)} times")
        text = text.replace(old, new)
    if "directives" in recipe:
        params = re.match(r"#! surface triton\n(#! param .*\n)*", text).end()
        lines = "".join(f"#! {line}\n" for line in recipe["directives"].splitlines())
        text = text[:params] + lines + re.sub(HEAD, "", text[params:])
    return text + ("\n\n" + recipe["append"] if "append" in recipe else "")


def made(options, name, recipe):
    path = options.folder / f"{name}.py"
    done = run(options, "kernel", "extract", recipe["extract"], "--task", recipe["task"], "--arch", options.arch, "--out", path)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    path.write_text(completed(path.read_text(), recipe))
    return path


def configurations(options, recipe, path):
    """What the package's autotuner would try, or the recipe, as options of the gate; one empty one where neither says."""
    if "configurations" in recipe:
        return [[word for name in config for word in ("--param", f"{name}={config[name]}")] for config in recipe["configurations"]]
    done = subprocess.run([os.environ.get("KLINEAGE_PYTHON", "python3"), "-B", "-c", CONFIGURATIONS, EXTRACT, recipe["extract"], re.sub(r"\D", "", options.arch)],
                          capture_output=True, text=True, check=True)
    declared = set(re.findall(r"(?m)^#! param (\w+)", path.read_text()))
    found = []
    for config in json.loads(done.stdout):
        values = {OPTIONS.get(name, name): int(value) for name, value in config.items() if isinstance(value, int)}
        if any(values[name] < least for name, least in recipe.get("least", {}).items()):
            continue
        words = [word for name in sorted(declared & set(values)) for word in ("--param", f"{name}={values[name]}")]
        if words not in found:
            found.append(words)
    return found or [[]]


def judged(options, instance, path, *words):
    """The verdict, None while it is missing, and what was said where there is none."""
    host = ["--spool", options.spool, "--arch", options.arch] if options.spool else []
    done = run(options, "gate", instance["task"], path, "--workload", instance["workload"], *host, *words, "--json", "-q")
    if done.returncode == PENDING:
        return None
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"outcome": "error", "why": done.stderr.strip(), "time": None}


def best_of(options, instance, files):
    """The row of an instance; without `best` while verdicts are missing."""
    row = {"name": instance["name"], "task": instance["task"], "workload": instance["workload"]}
    asked = [(name, words) for name in instance["kernels"] for words in files[name][1]]
    # To put jobs into a spool is to compile; where the gate times here, it takes turns by itself.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() if options.spool else 1) as pool:
        verdicts = list(pool.map(lambda a: judged(options, instance, files[a[0]][0], *a[1], "--quick", "--baseline", "none"), asked))
    row["tried"], row["missing"] = len(asked), verdicts.count(None)
    timed = [(verdict["time"]["median_ns"], *a) for verdict, a in zip(verdicts, asked) if verdict and verdict["time"]]
    row["timed"] = len(timed)
    row["not_timed"] = sorted({f"{verdict['outcome']}: {verdict['why']}"[:200] for verdict in verdicts if verdict and not verdict["time"]})
    if row["missing"] or not timed:
        return row
    _, name, words = min(timed)
    verdict = judged(options, instance, files[name][0], *words, "--baseline", "all")
    if verdict is None:
        return row | {"missing": 1}
    (options.folder / f"{instance['task']}.{instance['workload']}.json").write_text(json.dumps(verdict, indent=1) + "\n")
    return row | {"best": name, "params": words[1::2], "outcome": verdict["outcome"], "receipt": verdict["receipt"], "time": verdict["time"]}


def checked(options, instance, files):
    row = {"name": instance["name"], "kernels": {}}
    for name in instance["kernels"]:
        path, found = files[name]
        done = run(options, "kernel", "compile", path, "--task", instance["task"], "--workload", instance["workload"], "--arch", options.arch, *found[0])
        row["kernels"][name] = {"configurations": len(found), "compiled": done.returncode == 0, "why": done.stderr.strip()[:300]}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--spool")
    parser.add_argument("--only")
    parser.add_argument("--recipes", type=Path, default=RECIPES)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    recipes = yaml.safe_load(options.recipes.read_text())
    instances = [i for i in recipes["instances"] if options.only in (None, i["task"])]
    files = {}
    for name in dict.fromkeys(name for i in instances for name in i["kernels"]):
        path = made(options, name, recipes["kernels"][name])
        files[name] = path, configurations(options, recipes["kernels"][name], path)
    rows = [(checked if options.check else best_of)(options, instance, files) for instance in instances]
    print(json.dumps({"package": recipes["package"], "instances": rows}, indent=1))
    return PENDING if any(row.get("missing") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
