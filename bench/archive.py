#!/usr/bin/env python3
"""The archive of policy evolve beside OpenEvolve's ProgramDatabase: operations per second, alternating in one run.

    bench/archive.py [--bin build/bin/bench_archive] [--repeats 3]

Needs the PyPI package `openevolve` in the Python that runs this; it is no dependency of anything else:

    python3 -m venv /tmp/openevolve && /tmp/openevolve/bin/pip install openevolve
    /tmp/openevolve/bin/python bench/archive.py

Both: 5 islands, a grid of 20 x 10 cells each, a population of 1000, sources of 4 KiB, no disk, no log, no model.
  add                      one new program to an island that is full; ours hashes its source
  parent                   draw the next parent of an island (OpenEvolve: sample_from_island with no inspirations)
  parent_and_inspirations  the same with 5 programs to show: ours 3 top and 2 diverse, theirs 5 of their choice
  migrate                  all islands once, after 10 new programs on each that are better than all before; only the migration is timed (ours: ring in one direction, theirs: both)
They are not the same algorithm: ratios say what an operation of the engine costs a search, not who is right.  Prints one JSON object with
operations per second and the median of the ratios.  Nothing here judges; exit status 77 when OpenEvolve is not there."""
import argparse
import json
import logging
import platform
import random
import statistics
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ISLANDS, POPULATION, SIZES, SCORES, BYTES, FRESH = 5, 1000, 20, 10, 4096, 10
OPERATIONS = ("add", "parent", "parent_and_inspirations", "migrate")

try:
    from openevolve.config import DatabaseConfig
    from openevolve.database import Program, ProgramDatabase
except ImportError as missing:
    print(f"SKIPPED: nothing was measured: {missing}\nOpenEvolve has to be in the Python that runs this:\n"
          "    python3 -m venv /tmp/openevolve && /tmp/openevolve/bin/pip install openevolve\n"
          "    /tmp/openevolve/bin/python bench/archive.py", file=sys.stderr)
    sys.exit(77)


class Theirs:
    def __init__(self):
        self.db = ProgramDatabase(DatabaseConfig(
            population_size=POPULATION, num_islands=ISLANDS, log_prompts=False, random_seed=1,
            feature_dimensions=["size", "combined_score"], feature_bins={"size": SIZES, "combined_score": SCORES}))
        self.random = random.Random(1)
        self.made = 0
        while len(self.db.programs) < POPULATION:
            self.add()

    def fresh(self, better=False):
        self.made += 1
        score = 1 - 1 / (self.made + 2) if better else self.random.random() * 0.999
        return Program(id=f"p{self.made}", code=f"{self.made:8d}".ljust(BYTES, "x"), language="c",
                       metrics={"size": self.random.random(), "combined_score": score})

    def add(self, better=False):
        self.db.add(self.fresh(better), iteration=self.made, target_island=self.made % ISLANDS)

    def time_adds(self, n):
        programs = [self.fresh() for _ in range(n)]  # ours does not pay for making them either
        start = time.perf_counter()
        for island, program in enumerate(programs):
            self.db.add(program, iteration=self.made, target_island=island % ISLANDS)
        return n / (time.perf_counter() - start)

    def time_draws(self, n, inspirations):
        start = time.perf_counter()
        for i in range(n):
            self.db.sample_from_island(i % ISLANDS, num_inspirations=inspirations)
        return n / (time.perf_counter() - start)

    def time_migrations(self, n):
        seconds = 0.0
        for _ in range(n):
            for _ in range(FRESH * ISLANDS):
                self.add(better=True)
            start = time.perf_counter()
            self.db.migrate_programs()
            seconds += time.perf_counter() - start
        return n / seconds


def theirs():
    engine = Theirs()
    return {"population": len(engine.db.programs), "add": engine.time_adds(300), "parent": engine.time_draws(1000, 0),
            "parent_and_inspirations": engine.time_draws(1000, 5), "migrate": engine.time_migrations(3)}


def ours(binary):
    done = subprocess.run([binary], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{binary}\n{done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(ROOT / "build/bin/bench_archive"))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    pairs = [(ours(options.bin), theirs()) for _ in range(options.repeats)]
    result = {"population": [pairs[0][0]["population"], pairs[0][1]["population"]], "islands": ISLANDS, "cells": [SIZES, SCORES],
              "source_bytes": BYTES, "repeats": options.repeats, "openevolve": metadata.version("openevolve"),
              "python": platform.python_version()}
    for name in OPERATIONS:
        ratios = [a[name] / b[name] for a, b in pairs]
        result[name] = {"klineage_per_s": round(statistics.median(a[name] for a, _ in pairs)),
                        "openevolve_per_s": float(f"{statistics.median(b[name] for _, b in pairs):.4g}"),
                        "ratio": float(f"{statistics.median(ratios):.4g}"), "ratios": [float(f"{r:.4g}") for r in sorted(ratios)]}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
