#!/usr/bin/env python3
"""A sample of a corpus gated on a GPU: naive.cu of so many tasks, a family after the other.

    bench/corpus_sample.py CORPUS [--most 100] [--jobs 4] [--seconds 500] [--bin build/bin/klineage] [--draw FILE] > sample.json

CORPUS is what `klineage corpus` made.  Families take turns, and a family gives its tasks by the hash of their content: the same corpus
gives the same sample.  --draw FILE writes the names alone, one a line, and gates nothing; where CORPUS has no funnel.jsonl but such a
FILE as `sample`, that is the sample.  Each is gated by `klineage gate TASK TASK/naive.cu --quick`, --jobs at once, so nothing is said
of speed; what has not begun after --seconds is left out, and said.  Prints one JSON object."""
import argparse
import collections
import concurrent.futures
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def drawn(corpus, most):
    """Names of tasks."""
    if not (corpus / "funnel.jsonl").exists():
        return (corpus / "sample").read_text().split()[:most]
    families = collections.defaultdict(list)
    for line in (corpus / "funnel.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["stage"] == "admitted" and not row["reason"] and (corpus / row["task"] / "naive.cu").exists():
            families[row["family"]].append((row["hash"], row["task"]))
    queues, names = [sorted(tasks) for _, tasks in sorted(families.items())], []
    while any(queues) and len(names) < most:
        names += [queue.pop(0)[1] for queue in queues if queue]
    return names[:most]


def gated(options, name, end):
    if time.monotonic() > end:
        return None
    begun = time.monotonic()
    task = options.corpus / name
    command = [options.bin, "gate", str(task), str(task / "naive.cu"), "--quick", "--no-journal", "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True)
    row = {"task": Path(name).name, "seconds": round(time.monotonic() - begun, 1)}
    try:
        verdict = json.loads(done.stdout)
    except json.JSONDecodeError:
        return row | {"outcome": "error", "exit": done.returncode, "said": done.stderr.strip()[-600:]}
    named = verdict["time"]["vs"][0]["baseline"] if verdict["time"] and verdict["time"]["vs"] else None
    return row | {"baseline": named, "device": verdict["platform"]["device"]} | {k: verdict[k] for k in ("outcome", "stage", "why", "receipt", "workload", "degradations")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--most", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--bin", default=str(ROOT / "build/bin/klineage"))
    parser.add_argument("--draw", type=Path)
    options = parser.parse_args()
    names = drawn(options.corpus, options.most)
    if options.draw:
        options.draw.write_text("".join(name + "\n" for name in names))
        return 0
    end = time.monotonic() + options.seconds
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = [row for row in pool.map(lambda name: gated(options, name, end), names) if row]
    print(json.dumps({"drawn": len(names), "gated": len(rows), "outcomes": collections.Counter(row["outcome"] for row in rows), "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
