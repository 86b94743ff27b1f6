#!/usr/bin/env python3
"""What admitted cards do on tasks that they were not learned from.

    bench/held_out.py [--library library] [--expected] [--json]

Counts rows of LIBRARY/probes.jsonl that name an admitted card, whose text was shown, on a task that gave none of its births: what a
search proposed by it and what `klineage probe` tried.  `decided` are those that are faster, slower or no different; undecided ones
are counted beside them, and so are answers that declined, did not compile or were wrong.  Intervals are 95 %, of a bootstrap over
tasks.  --expected adds those of which the gain model, that has not seen their task, expects that they are more likely faster than not
(numpy and scikit-learn; two minutes)."""
import argparse
import collections
import json
import random
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DECIDED = ("faster", "no_change", "slower")
DRAWS = 10000


def rows_of(library):
    """Rows away from home."""
    rows = [json.loads(line) for line in (library / "probes.jsonl").read_text().splitlines()]
    admitted = {path.name for path in (library / "admitted").iterdir()}
    home = {(row["card"], row["task"]) for row in rows if row["origin"] == "edge"}
    return [row for row in rows if row["card"] in admitted and row["origin"] != "edge" and (row["card"], row["task"]) not in home]


def expected(library):
    """Places of the rows that are likely to be faster, for what the other tasks teach."""
    import gain
    rows, facts = gain.rows_of(library)
    return {row["place"] for row, p in zip(rows, gain.unseen(gain.Data(rows, facts))[0]) if p >= 0.5}


def share(rows):
    decided = [row for row in rows if row["outcome"] in DECIDED]
    return sum(row["outcome"] == "faster" for row in decided) / len(decided) if decided else float("nan")


def interval(rows):
    by_task = collections.defaultdict(list)
    for row in rows:
        by_task[row["task"]].append(row)
    draw, tasks = random.Random(1), sorted(by_task)
    shares = sorted(s for s in (share([row for task in draw.choices(tasks, k=len(tasks)) for row in by_task[task]]) for _ in range(DRAWS)) if s == s)
    return shares[len(shares) // 40], shares[-1 - len(shares) // 40]


def summary(rows):
    low, high = interval(rows)
    return {"tries": len(rows), "tasks": len({row["task"] for row in rows}), "outcomes": dict(collections.Counter(row["outcome"] for row in rows)),
            "decided": sum(row["outcome"] in DECIDED for row in rows), "faster": share(rows), "low": low, "high": high}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=ROOT / "library")
    parser.add_argument("--expected", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = rows_of(options.library)
    found = {"all": summary(rows)}
    if options.expected:
        likely = expected(options.library)
        found["expected faster"] = summary([row for row in rows if row["place"] in likely])
    found |= {card: summary([row for row in rows if row["card"] == card]) for card in sorted({row["card"] for row in rows})}
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for name, s in found.items():
        print(f"{name:24} {s['tries']:4} tries on {s['tasks']:2} tasks, faster {s['faster']:.2f} [{s['low']:.2f}, {s['high']:.2f}] of {s['decided']} decided; {s['outcomes']}")


if __name__ == "__main__":
    main()
