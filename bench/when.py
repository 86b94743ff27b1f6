#!/usr/bin/env python3
"""when.py - what of the cards is it that helps?  The arms of experiments/when.yaml, compared as docs/how-to/causal-experiment.md has fixed it.

One number a track: log gain per dollar, where what is not measurably faster than its start gained nothing.  Arms are paired by task and
trial; a task weighs the same however many of its trials have ended; intervals come from drawing tasks, and trials within them, with
replacement.  Reads results.json of `klineage experiment --out`; tracks that did not end are left out and counted.

usage: bench/when.py RESULTS.json [--again AGAIN.jsonl] [--json]
       bench/when.py --measure AGAIN.jsonl OUT [--klineage PROGRAM]     every best of OUT against its start once more, on a quiet machine
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DRAWS = 10_000
PAIRS = [("ours", "none"), ("ours", "names"), ("ours", "shuffled"), ("ours", "elsewhere"), ("ours", "all"), ("names", "none"), ("all", "none")]
MEASURES = ("log gain per dollar", "log gain", "dollars", "first new best, log gain", "succeeded")
Z = statistics.NormalDist().inv_cdf


# ---- tracks ----------------------------------------------------------------------------------


def first_new_best(track):
    """Log of the first ratio that was a new best over that of the start; 0 where there was none."""
    points = [ratio for _, ratio, _ in track["curve"] if ratio]
    return math.log(points[1] / points[0]) if track["solved"] and len(points) > 2 else 0.0


def arm_of(track):
    """By what the row of the start says; a track that was shown no cards says nothing."""
    note = track.get("arm") or ""
    return note.split(";")[0].removeprefix("cards: ") or "none"


def values(track, again):
    gain = again.get(track["track"], track["gain"] if track["solved"] else None)
    log_gain = math.log(gain["ratio"]) if gain else 0.0
    dollars = track["spent_microusd"] / 1e6
    return {"log gain per dollar": log_gain / dollars, "log gain": log_gain, "dollars": dollars,
            "first new best, log gain": first_new_best(track), "succeeded": float(log_gain > 0)}


def ended(track):
    return track["stopped"] is not None and not track["never_asked"] and track["spent_microusd"] > 0


def read(results, again):
    """{arm: {(task, trial): values}}, {(task, trial): names withheld from arm ours}, how many were left out by why"""
    arms, withheld, left = {}, {}, {"not ended": 0, "never asked": 0}
    for track in results["tracks"]:
        if not ended(track):
            left["never asked" if track["never_asked"] else "not ended"] += 1
            continue
        place = track["workload"], track["trial"]
        arms.setdefault(arm_of(track), {})[place] = values(track, again)
        note = track.get("arm") or ""
        if arm_of(track) == "ours" and "withheld" in note:
            withheld[place] = set(note.split("; withheld", 1)[1].split(";")[0].split())
    return arms, withheld, left


# ---- statistics ------------------------------------------------------------------------------


def by_task(numbers):
    """{(task, trial): x} -> {task: [x]}"""
    tasks = {}
    for (task, _), x in sorted(numbers.items()):
        tasks.setdefault(task, []).append(x)
    return tasks


def of_tasks(tasks):
    return statistics.fmean(statistics.fmean(x) for x in tasks)


def bootstrap(numbers, seed):
    """Mean over tasks of their trials' mean, and its 95 % interval: tasks are drawn, then trials of each."""
    tasks = list(by_task(numbers).values())
    source = random.Random(seed)
    drawn = sorted(of_tasks([source.choices(t, k=len(t)) for t in source.choices(tasks, k=len(tasks))]) for _ in range(DRAWS))
    return of_tasks(tasks), drawn[int(0.025 * DRAWS)], drawn[int(0.975 * DRAWS)]


def detectable(numbers):
    """The least difference that this many tasks would show in four of five experiments, two-sided 5 %: None with one task."""
    means = [statistics.fmean(t) for t in by_task(numbers).values()]
    if len(means) < 2:
        return None
    return (Z(0.975) + Z(0.8)) * statistics.stdev(means) / math.sqrt(len(means))


def compare(arms, arm, other, measure):
    pairs = {p: arms[arm][p][measure] - arms[other][p][measure] for p in arms.get(arm, {}).keys() & arms.get(other, {}).keys()}
    if not pairs:
        return None
    mean, low, high = bootstrap(pairs, f"{arm} {other} {measure}")
    return {"arm": arm, "over": other, "measure": measure, "pairs": len(pairs), "tasks": len(by_task(pairs)), "difference": mean, "low": low,
            "high": high, "detectable": detectable(pairs)}


def effect_of(card, ours, withheld):
    """Difference between trials of a task with the card and without it, over tasks that have both."""
    with_card = by_task({p: v["log gain"] for p, v in ours.items() if p in withheld and card not in withheld[p]})
    without = by_task({p: v["log gain"] for p, v in ours.items() if card in withheld.get(p, ())})
    both = sorted(with_card.keys() & without.keys())
    row = {"card": card, "with": sum(len(with_card[t]) for t in both), "without": sum(len(without[t]) for t in both), "tasks": len(both)}
    if not both:
        return row
    source = random.Random(card)

    def draw(tasks, of):
        return of_tasks([of(with_card[t]) for t in tasks]) - of_tasks([of(without[t]) for t in tasks])

    drawn = sorted(draw(source.choices(both, k=len(both)), lambda x: source.choices(x, k=len(x))) for _ in range(DRAWS))
    return row | {"effect": draw(both, list), "low": drawn[int(0.025 * DRAWS)], "high": drawn[int(0.975 * DRAWS)]}


def analyse(results, again):
    arms, withheld, left = read(results, again)
    summary = {arm: {"tracks": len(of), "tasks": len(by_task(of))} | {m: of_tasks(by_task({p: v[m] for p, v in of.items()}).values()) for m in MEASURES}
               for arm, of in arms.items()}
    rows = [row for arm, other in PAIRS for m in MEASURES if (row := compare(arms, arm, other, m))]
    cards = sorted(set().union(*withheld.values())) if withheld else []
    return {"arms": summary, "left_out": left, "comparisons": rows, "cards": [effect_of(c, arms["ours"], withheld) for c in cards]}


# ---- tables ----------------------------------------------------------------------------------


def number(x):
    return "–" if x is None else f"{x:+.3f}"


def tables(found):
    print("| arm | tracks | tasks | " + " | ".join(MEASURES) + " |\n|" + " --- |" * (3 + len(MEASURES)))
    for arm, row in found["arms"].items():
        print(f"| {arm} | {row['tracks']} | {row['tasks']} | " + " | ".join(f"{row[m]:.3f}" for m in MEASURES) + " |")
    print("\nLeft out: " + ", ".join(f"{n} {why}" for why, n in found["left_out"].items()) + ".")
    print("\n| arm | over | measure | pairs | tasks | difference | 95 % interval | least that 80 % power would show |\n|" + " --- |" * 8)
    for r in found["comparisons"]:
        print(f"| {r['arm']} | {r['over']} | {r['measure']} | {r['pairs']} | {r['tasks']} | {number(r['difference'])} | "
              f"{number(r['low'])} to {number(r['high'])} | {number(r['detectable'])} |")
    if found["cards"]:
        print("\n| card, offered over withheld | with | without | tasks | log gain | 95 % interval |\n|" + " --- |" * 6)
    for r in found["cards"]:
        print(f"| {r['card']} | {r['with']} | {r['without']} | {r['tasks']} | {number(r.get('effect'))} | {number(r.get('low'))} to {number(r.get('high'))} |")


# ---- once more -------------------------------------------------------------------------------


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def measure(path, out, program):
    """Appends a line a track; one that is there is not measured again."""
    results = json.loads((out / "results.json").read_text())
    done = {line["track"] for line in lines_of(path)}
    for track in results["tracks"]:
        best = out / "best" / (track["track"].replace("/", "-") + ".c")
        if track["track"] in done or not ended(track) or not track["solved"] or not best.exists():
            continue
        task = results["targets"][track["target"]]
        start = ROOT / "tasks" / task["workload"] / "naive.c"
        command = [program, "gate", task["workload"], str(best), "--workload", task["shape"], "--against", str(start), "--json"]
        answer = subprocess.run(command, capture_output=True, text=True)
        verdict = json.loads(answer.stdout) if answer.stdout else {}
        found = next(iter(verdict.get("comparisons") or []), None)
        if not found or verdict["outcome"] != "pass":
            print(f"{track['track']}: {verdict.get('outcome', answer.stderr.strip())}", file=sys.stderr)
            continue
        faster = found["call"] == "faster"
        line = {"track": track["track"], "ratio": found["ratio"] if faster else 1.0, "low": found["ci"][0], "high": found["ci"][1], "call": found["call"]}
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path, help="results.json, or with --measure its folder")
    parser.add_argument("--again", type=pathlib.Path, help="gains that --measure has written, in place of those of the tracks")
    parser.add_argument("--measure", type=pathlib.Path, metavar="AGAIN.jsonl")
    parser.add_argument("--klineage", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.measure:
        return measure(args.measure, args.results, args.klineage)
    again = {line["track"]: line for line in lines_of(args.again)} if args.again else {}
    found = analyse(json.loads(args.results.read_text()), again)
    print(json.dumps(found, indent=1)) if args.json else tables(found)


if __name__ == "__main__":
    main()
