#!/usr/bin/env python3
"""The held-out instances, each by the best of FlagGems' own kernels over FlagGems' own configurations, judged by the gate.

    bench/flaggems.py FOLDER [--bin build/bin/klineage] [--arch sm_90a] [--spool DIR [--work]] [--jit] [--seconds N] [--only TASK] [--check | --prepare]

What is taken for which instance says bench/experiments/flaggems.yaml.  $KLINEAGE_PYTHON has triton and the package, which
is imported by the baseline of --jit alone; no text of it leaves FOLDER, which is not for a repository.  --prepare takes each kernel out into
FOLDER/KERNEL.py, completed by its recipe, with its autotuner's configurations beside it; where they are there already, the
package is not needed.  Every configuration gets a quick verdict at the first instance of its kind, the NARROW fastest of them
at the instances that are `like` it, in a file of several kernels the fastest of each together, and the fastest of each instance
a full verdict beside PyTorch, at last beside all baselines.  With --jit that one is also judged beside FlagGems' own function, its tuner held to the same configuration (flaggems_baseline.py),
and beside Triton's JIT of the extracted file (jit_baseline.py).  Verdicts are kept as FOLDER/verdicts/*.json.  With --spool
the work goes to another host: exit status 11 says that verdicts are missing; run the worker there, then this again.  With
--work the worker is started here and waited for; --seconds ends what is not done by then, and the rows say so.  --check
compiles each kernel for each instance and judges nothing.  --known FILE takes what was the fastest from an earlier result, and no
configuration is tried.  Prints one JSON object.  SPDX-License-Identifier: Apache-2.0"""
import argparse
import ast
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import yaml

import jit

ROOT = Path(__file__).resolve().parent.parent
EXTRACT = ROOT / "src/surface/triton/extract"
RECIPES = ROOT / "bench/experiments/flaggems.yaml"
PENDING = 11
NARROW = 12
STOCK = 16
# Of --seconds, when a part of the work has to be done.
SHARES = {"sweep": 0.45, "like": 0.65, "joined": 0.68, "full": 0.78, "jit": 0.95, "again": 0.97, "all": 1.0}
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


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- the kernels and their configurations ------------------------------------------------------------------------------


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
    appended = recipe.get("append", [])
    return "\n\n".join([text, *([appended] if isinstance(appended, str) else appended)])


def parts_of(recipe):
    """What is taken out, by what its params begin with: nothing where it is one kernel."""
    parts = recipe["extract"]
    return {f"{part}_": what for part, what in parts.items()} if isinstance(parts, dict) else {"": parts}


def together(texts):
    """Extracted files, by what their params begin with, as one file: a function that several of them have stands there once."""
    params = [line for prefix, text in texts.items() for line in re.sub(r"(?m)^#! param ", f"#! param {prefix}", text).splitlines() if line.startswith("#! param ")]
    pieces = [piece.strip("\n") for text in texts.values() for piece in re.sub(r"(?m)^#! .*\n", "", text).split("\n\n\n")]
    text = "\n".join(["#! surface triton", *params, "\n\n\n".join(dict.fromkeys(pieces)), ""])
    known = {}
    for node in ast.parse(text).body:
        for name in [target.id for target in node.targets] if isinstance(node, ast.Assign) else [getattr(node, "name", None)]:    # imports have none
            if name and known.setdefault(name, ast.dump(node)) != ast.dump(node):
                raise ValueError(f"two kernels mean something else by {name!r}")
    return text


def made(options, name, recipe):
    path, texts = options.folder / f"{name}.py", {}
    for prefix, what in parts_of(recipe).items():
        done = run(options, "kernel", "extract", what, "--task", recipe["task"], "--arch", options.arch, "--out", path)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        texts[prefix] = path.read_text()
    path.write_text(completed(together(texts) if len(texts) > 1 else path.read_text(), recipe))
    return path


def params_of(words):
    return {name: int(value) for name, _, value in (word.partition("=") for word in words[1::2])}


def words_of(params):
    return [word for name, value in params.items() for word in ("--param", f"{name}={value}")]


def tuner_of(options, what, prefix, declared):
    """What the package's autotuner would try of one kernel, as params of the file."""
    done = subprocess.run([os.environ.get("KLINEAGE_PYTHON", "python3"), "-B", "-c", CONFIGURATIONS, EXTRACT, what, re.sub(r"\D", "", options.arch)],
                          capture_output=True, text=True, check=True)
    for config in json.loads(done.stdout):
        values = {prefix + OPTIONS.get(name, name): int(value) for name, value in config.items() if isinstance(value, int)}
        yield {name: values[name] for name in sorted(declared & set(values))}


def configurations(options, recipe, path):
    """What the package's autotuners would try, or the recipe, as options of the gate; one empty one where neither says.  Of several
    kernels one at a time is tried, the others at their first: `joined` puts together what is the fastest of each."""
    if "configurations" in recipe:
        return [words_of(config) for config in recipe["configurations"]]
    declared = set(re.findall(r"(?m)^#! param (\w+)", path.read_text()))
    tuners = [list(tuner_of(options, what, prefix, declared)) for prefix, what in parts_of(recipe).items()]
    first = {name: value for tuner in tuners for name, value in (tuner or [{}])[0].items()}
    found = []
    for config in [config for tuner in tuners for config in tuner]:
        if words_of(first | config) not in found:
            found.append(words_of(first | config))
    return found or [[]]


def joined(first, ranked):
    """Of configurations that differ from the first in the params of one kernel, the fastest first: of each kernel the fastest."""
    params, known = params_of(first), set()
    for words in ranked:
        changed = {name: value for name, value in params_of(words).items() if value != params_of(first)[name]}
        kernels = {name.partition("_")[0] for name in changed}
        if not changed:
            break
        params |= {} if kernels & known else changed
        known |= kernels
    return words_of(params)


def prepared(options, recipes, names):
    """Each kernel's file and configurations: those that lie there, else taken out of the package."""
    place = options.folder / "configurations.json"
    known = json.loads(place.read_text()) if place.exists() else {}
    for name in names:
        if name not in known:
            path = made(options, name, recipes["kernels"][name])
            known[name] = configurations(options, recipes["kernels"][name], path)
    place.write_text(json.dumps(known))
    return {name: (options.folder / f"{name}.py", known[name]) for name in names}


def worth(recipe, words):
    """Whether a configuration is tried at all: `at_least` of its recipe."""
    params = params_of(words)
    return all(params[name] >= least for name, least in recipe.get("at_least", {}).items())


# ---- verdicts ----------------------------------------------------------------------------------------------------------


def judged(options, task, workload, path, *words):
    """The verdict, None while it is missing, and what was said where there is none."""
    if time.monotonic() > options.until:
        return None
    host = ["--spool", options.spool, "--arch", options.arch] if options.spool else []
    done = run(options, "gate", task, path, "--workload", workload, *host, *words, "--json", "-q")
    if done.returncode == PENDING:
        options.ids[task, workload, path, *words] = json.loads(done.stderr)["message"].split()[1]
        return None
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"outcome": "error", "why": json.loads(done.stderr)["message"], "time": None, "degradations": []}


def read(options, job):
    """The verdict of a job that was put, where the worker is done with it: to ask for another would put it again."""
    there = job in options.ids and any((Path(options.spool) / "done").glob(options.ids[job] + "*"))
    return judged(options, *job) if there else None


def waiting(options, *folders):
    return [path for folder in folders or ("todo", "taken") for path in (Path(options.spool) / folder).glob("*")]


def settle(options):
    """Until no job is left or the time for this part is over; then what still waits is taken out of the spool."""
    while waiting(options) and time.monotonic() < options.until:
        time.sleep(0.2)
    for path in waiting(options, "todo"):
        shutil.rmtree(path, ignore_errors=True)
    while waiting(options) and time.monotonic() < options.until + 20:
        time.sleep(0.2)


class Worker(threading.Thread):
    """Works on the spool.  A worker ends where it finds no job, and the next one is cold: so each waits for STOCK jobs or the last."""

    def __init__(self, options):
        super().__init__(daemon=True)
        self.options, self.all_put, self.ended = options, threading.Event(), threading.Event()

    def run(self):
        command = [str(Path(self.options.bin).parent / "klineage-worker"), "--spool", self.options.spool]
        with open(self.options.folder / "worker.log", "w") as log:
            while not self.ended.wait(0.1):
                jobs = len(waiting(self.options, "todo"))
                if not jobs or not (jobs >= STOCK or self.all_put.is_set()):
                    continue
                one = subprocess.Popen(command, stdout=log, stderr=log)
                while one.poll() is None and not self.ended.wait(0.1):
                    pass
                one.terminate()
                one.wait()

    def end(self):
        self.ended.set()
        self.join()


def judge_all(options, part, jobs):
    """A verdict or None for each job of a part."""
    if options.seconds:
        options.until = options.start + options.seconds * SHARES[part]
    if options.worker:
        options.worker.all_put.clear()
    # To put jobs into a spool is to compile; where the gate times here, it takes turns by itself.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() if options.spool else 1) as pool:
        verdicts = list(pool.map(lambda job: judged(options, *job), jobs))
        if options.worker and None in verdicts:
            options.worker.all_put.set()
            settle(options)
            options.until = float("inf")
            verdicts = list(pool.map(lambda job, found: found or read(options, job), jobs, verdicts))
    say(f"{time.monotonic() - options.start:.0f} s: {part}: {len(jobs) - verdicts.count(None)} of {len(jobs)} verdicts")
    return verdicts


# ---- the parts ---------------------------------------------------------------------------------------------------------


def sweep(options, part, instances, choices, files, rows):
    """A quick verdict of each choice (kernel, configuration); `ranked` of a row are those that were timed, the fastest first."""
    # In turn, so that where time runs out every instance has some.
    asked = [(i, *choices[i["name"]][k]) for k in range(max(map(len, choices.values()), default=0)) for i in instances if k < len(choices[i["name"]])]
    verdicts = judge_all(options, part, [(i["task"], i["workload"], files[name][0], *words, "--quick", "--baseline", "none") for i, name, words in asked])
    for i in instances:
        row = rows[i["name"]]
        mine = [(verdict, name, words) for verdict, (of, name, words) in zip(verdicts, asked) if of is i]
        timed = sorted(row.get("ranked", []) + [(verdict["time"]["median_ns"], name, words) for verdict, name, words in mine if verdict and verdict["time"]])
        not_timed = sorted({f"{verdict['outcome']}: {verdict['why']}"[:200] for verdict, _, _ in mine if verdict and not verdict["time"]} | set(row.get("not_timed", [])))
        row |= {"tried": row.get("tried", 0) + len(mine), "missing": row.get("missing", 0) + sum(verdict is None for verdict, _, _ in mine),
                "timed": len(timed), "not_timed": not_timed, "ranked": timed}


def keep(options, instance, kind, verdict):
    folder = options.folder / "verdicts"
    folder.mkdir(exist_ok=True)
    (folder / f"{instance['task']}.{instance['workload']}.{kind}.json").write_text(json.dumps(verdict, indent=1) + "\n")


def versus(verdict):
    timed = verdict["time"]["vs"] if verdict["time"] else []
    return {one["baseline"]: {key: one[key] for key in ("baseline_ns", "ratio", "low", "high", "floor", "pairs", "call", "described")} for one in timed}


def best(options, instances, files, rows, part="full", baseline="torch"):
    """The full verdict of each instance's fastest."""
    ready = [i for i in instances if rows[i["name"]]["ranked"]]
    first = {i["name"]: rows[i["name"]]["ranked"][0] for i in ready}
    verdicts = judge_all(options, part, [(i["task"], i["workload"], files[first[i["name"]][1]][0], *first[i["name"]][2], "--baseline", baseline) for i in ready])
    for i, verdict in zip(ready, verdicts):
        row, (quick_ns, name, words) = rows[i["name"]], first[i["name"]]
        row |= {"best": name, "params": words[1::2], "quick_ns": quick_ns}
        row["missing"] += verdict is None and part == "full"
        if verdict is None or (row.get("median_ns") and not verdict["time"]):
            continue
        keep(options, i, "full", verdict)
        row |= {"outcome": verdict["outcome"], "why": verdict["why"], "receipt": verdict.get("receipt"), "degradations": verdict["degradations"],
                "median_ns": verdict["time"]["median_ns"] if verdict["time"] else None, "platform": verdict.get("platform"), "versus": versus(verdict)}


def beside_all(options, instances, files, rows):
    """The same with every baseline of the task, last: a naive kernel takes seconds at these sizes."""
    best(options, instances, files, rows, "all", "all")


def tasks_with_jit(options, ready, files, rows):
    """A copy of each task whose baselines are the package and Triton's own JIT, each at the configuration that was the fastest."""
    places = {}
    for task in {i["task"] for i in ready}:
        cases = [jit.case(f"tasks/{task}", i["workload"], files[rows[i["name"]]["best"]][0], params_of(rows[i["name"]]["ranked"][0][2])) for i in ready if i["task"] == task]
        places[task] = options.folder / "jit" / task
        shutil.rmtree(places[task], ignore_errors=True)
        jit.task_with_jit(places[task], f"tasks/{task}", cases, {"flag_gems": ROOT / "bench/flaggems_baseline.py"})
    return places


def beside_jit(options, instances, files, rows):
    """The same kernel and configuration by its package and by Triton's own JIT; where a baseline fails, by the second alone."""
    ready = [i for i in instances if "best" in rows[i["name"]]]
    places = tasks_with_jit(options, ready, files, rows)
    jobs = [(places[i["task"]], i["workload"], files[rows[i["name"]]["best"]][0], *rows[i["name"]]["ranked"][0][2], "--baseline", "all") for i in ready]
    verdicts = judge_all(options, "jit", jobs)
    failed = [k for k, verdict in enumerate(verdicts) if verdict and verdict["outcome"] == "error"]
    again = judge_all(options, "again", [(*jobs[k][:-1], "jit") for k in failed]) if failed else []
    for k, verdict in zip(failed, again):
        rows[ready[k]["name"]]["package_failed"] = verdicts[k]["why"][:400]
        verdicts[k] = verdict
    for i, verdict in zip(ready, verdicts):
        if verdict is None:
            rows[i["name"]]["missing"] += 1
            continue
        keep(options, i, "jit", verdict)
        rows[i["name"]]["jit"] = {"outcome": verdict["outcome"], "why": verdict["why"], "artefact": verdict.get("artefact", "")[:16],
                                  "degradations": verdict["degradations"], "versus": versus(verdict)}


def result(options, recipes, rows):
    """What is known so far, kept in FOLDER as well."""
    shown = [row | {"ranked": [[ns, name, " ".join(words[1::2])] for ns, name, words in row.get("ranked", [])]} for row in rows.values()]
    text = json.dumps({"package": recipes["package"], "instances": shown}, indent=1)
    (options.folder / "rows.json").write_text(text + "\n")
    return text


def known_rows(path):
    """Rows as `result` shows them, with the words of their configurations."""
    rows = {row["name"]: row for row in json.loads(path.read_text())["instances"]}
    for row in rows.values():
        row["ranked"] = [(ns, name, [word for param in params.split() for word in ("--param", param)]) for ns, name, params in row["ranked"]]
        row["missing"] = 0
    return rows


def known_parts(options, recipes, instances, files):
    """The fastest of each instance are those of an earlier visit: no configuration is tried."""
    rows = known_rows(options.known)
    for judge in [best] + [beside_jit] * options.jit:
        judge(options, instances, files, rows)
    return result(options, recipes, rows), any(row["missing"] for row in rows.values())


def joined_of(recipes, instance, files, rows):
    """For each kernel of an instance that was taken out of several, the fastest of each together, where that was not tried yet."""
    for name in instance["kernels"]:
        mine = [words for _, of, words in rows[instance["name"]]["ranked"] if of == name]
        if mine and len(parts_of(recipes["kernels"][name])) > 1:
            words = joined(files[name][1][0], mine)
            yield from [(name, words)] if words not in mine else []


def all_parts(options, recipes, instances, files):
    """A part needs all verdicts of the part before it, or what there is of them where its time is over."""
    rows = {i["name"]: {"name": i["name"], "task": i["task"], "workload": i["workload"]} for i in instances}
    elsewhere = options.spool and not options.work
    first, like = ([i for i in instances if (i.get("like") in rows) is narrow] for narrow in (False, True))
    parts = [("sweep", first, lambda i: [(name, words) for name in i["kernels"] for words in files[name][1] if worth(recipes["kernels"][name], words)]),
             ("like", like, lambda i: [(name, words) for _, name, words in rows[i["like"]]["ranked"][:NARROW]]),
             ("joined", instances, lambda i: list(joined_of(recipes, i, files, rows)))]
    for part, mine, choices in parts:
        sweep(options, part, mine, {i["name"]: choices(i) for i in mine}, files, rows)
        text = result(options, recipes, rows)
        if elsewhere and any(rows[i["name"]]["missing"] for i in mine):
            return text, True
    for judge in [best] + [beside_jit] * options.jit + [beside_all]:
        judge(options, instances, files, rows)
        text = result(options, recipes, rows)
    return text, any(row["missing"] for row in rows.values())


def checked(options, instance, files):
    row = {"name": instance["name"], "kernels": {}}
    for name in instance["kernels"]:
        path, found = files[name]
        done = run(options, "kernel", "compile", path, "--task", instance["task"], "--workload", instance["workload"], "--arch", options.arch, *found[0])
        row["kernels"][name] = {"configurations": len(found), "compiled": done.returncode == 0, "why": done.stderr.strip()[:300]}
    return row


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--spool")
    parser.add_argument("--work", action="store_true")
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--known", type=Path)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--only")
    parser.add_argument("--recipes", type=Path, default=RECIPES)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--prepare", action="store_true")
    options = parser.parse_args()
    if options.work and not options.spool:
        parser.error("--work is for --spool")
    options.start, options.until, options.worker = time.monotonic(), float("inf"), None
    options.ids = {}    # of jobs in the spool
    options.bin, options.folder = str(Path(options.bin).resolve()), options.folder.resolve()
    options.spool = str(Path(options.spool).resolve()) if options.spool else None     # commands run in ROOT
    options.folder.mkdir(parents=True, exist_ok=True)
    return options


def main():
    options = arguments()
    recipes = yaml.safe_load(options.recipes.read_text())
    instances = [i for i in recipes["instances"] if options.only in (None, i["task"])]
    files = prepared(options, recipes, dict.fromkeys(name for i in instances for name in i["kernels"]))
    if options.prepare or options.check:
        rows = [checked(options, instance, files) for instance in instances] if options.check else [
            {"name": name, "configurations": len(found), "tried": sum(worth(recipes["kernels"][name], words) for words in found)} for name, (_, found) in files.items()]
        print(json.dumps({"package": recipes["package"], "instances": rows}, indent=1))
        return 0
    options.worker = Worker(options) if options.work else None
    if options.worker:
        options.worker.start()
    text, missing = (known_parts if options.known else all_parts)(options, recipes, instances, files)
    if options.worker:
        options.worker.end()
    print(text)
    return PENDING if missing else 0


if __name__ == "__main__":
    sys.exit(main())
