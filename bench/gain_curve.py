#!/usr/bin/env python3
"""What do more rows of evidence bring?  The gain model fitted on parts of them, judged on tasks that it has not seen.

    bench/gain_curve.py [--library library] [--draws 10] [--json FILE]      # minutes
    bench/gain_curve.py --draw FILE OUT.svg                                 # what the first has written, as a picture

For each task in turn P(faster) is fitted on a random part of the other tasks' rows, --draws times for each size, and judged on
all rows of that task; and once more with the outcomes of the part shuffled, which leaves nothing to learn.  The penalty is chosen
anew each time, on the part alone, by whole tasks held out.  Two figures: the Brier score less that of the part's plain share
(below 0 is better), and how often of two proposals of one task, one of which was faster, the model has that one first (0.5 is
chance).  Intervals: 95 % of a bootstrap over tasks, because rows of one task are not independent.  --draw needs gnuplot.
Prints one JSON object.  SPDX-License-Identifier: Apache-2.0"""
import argparse
import json
import subprocess
from pathlib import Path

import gain
import numpy as np
from gain import ROOT, Data, Fit, rows_of
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

SIZES = (25, 50, 100, 200, 300, 400)
FOLDS = 4
PENALTIES = gain.PENALTIES[1::2]
BOOTSTRAPS = 2000
LEAST = 10  # rows of each outcome below which nothing is fitted


class Passing(Fit):
    """The half of the gain model that says whether a proposal will be faster."""

    def __init__(self, data):
        self.mean, self.scale = np.nan_to_num(np.nanmean(data.x, axis=0)), np.nan_to_num(np.nanstd(data.x, axis=0))
        self.scale[self.scale == 0] = 1
        self.actions = sorted(set(data.action))
        self.model = LogisticRegression(C=self.penalty(data), max_iter=1000, solver="newton-cholesky").fit(self.design(data.x, data.action), data.faster)

    def penalty(self, data):
        """The one that is best on tasks of `data`, a fold of them held out at a time."""
        design = self.design(data.x, data.action)
        groups = len(set(data.task))
        if groups < 2:
            return PENALTIES[0]
        score = dict.fromkeys(PENALTIES, 0.0)
        for rest, held in GroupKFold(min(FOLDS, groups)).split(design, groups=data.task):
            if len(set(data.faster[rest])) < 2:
                continue
            for c in PENALTIES:
                p = LogisticRegression(C=c, max_iter=1000, solver="newton-cholesky").fit(design[rest], data.faster[rest]).predict_proba(design[held])[:, 1]
                score[c] += ((p - data.faster[held]) ** 2).sum()
        return min(PENALTIES, key=score.get)

    def p_faster(self, data):
        return self.model.predict_proba(self.design(data.x, data.action))[:, 1]


def judged(part, held):
    """Sum over rows of the Brier score less the share's; probability that a faster one is first, or NaN where none can be."""
    if min(part.faster.sum(), (~part.faster).sum()) < min(LEAST, len(part.faster) // 4):
        return np.nan, np.nan
    p = Passing(part).p_faster(held)
    skill = ((p - held.faster) ** 2 - (part.faster.mean() - held.faster) ** 2).sum()
    return skill, roc_auc_score(held.faster, p) if len(set(held.faster)) == 2 else np.nan


def one_size(data, size, draws, shuffled, rng):
    """For each task: rows, mean over draws of both figures, and pairs of unlike outcomes."""
    out = []
    for task in sorted(set(data.task)):
        here = data.task == task
        rest, held = np.flatnonzero(~here), data.part(here)
        found = []
        for _ in range(draws if size < len(rest) or shuffled else 1):
            part = data.part(rng.choice(rest, min(size, len(rest)), replace=False))
            if shuffled:
                part.faster = rng.permutation(part.faster)
            found.append(judged(part, held))
        skill, first = np.nanmean(np.array(found), axis=0) if np.isfinite(np.array(found)[:, 0]).any() else (np.nan, np.nan)
        out.append((len(held.faster), skill, first, held.faster.sum() * (~held.faster).sum()))
    return np.array(out)


def figures(tasks):
    known, ranked = np.isfinite(tasks[:, 1]), np.isfinite(tasks[:, 2])
    return tasks[known, 1].sum() / tasks[known, 0].sum(), np.average(tasks[ranked, 2], weights=np.sqrt(tasks[ranked, 3]))


def with_interval(tasks, rng):
    again = np.array([figures(tasks[rng.integers(0, len(tasks), len(tasks))]) for _ in range(BOOTSTRAPS)])
    low, high = np.quantile(again, [0.025, 0.975], axis=0)
    skill, first = figures(tasks)
    return {"brier_less_share": {"value": skill, "low": low[0], "high": high[0]}, "faster_first": {"value": first, "low": low[1], "high": high[1]}}


def curve(data, draws, rng):
    rows = []
    for size in (*SIZES, len(data.task)):
        for shuffled in (False, True):
            rows.append({"rows": size if size < len(data.task) else "all", "outcomes": "shuffled" if shuffled else "measured",
                         **with_interval(one_size(data, size, draws, shuffled, rng), rng)})
    return rows


PLOT = """
set encoding utf8
set terminal svg size 620,360 dynamic font "sans-serif,15" background "#ffffff"
set border 3 lc rgb "#767d85"
set tics nomirror out scale 0.5 textcolor rgb "#1a1d21"
set xlabel "rows of other tasks that the model was fitted on"
set ylabel "faster one ranked first"
set yrange [0.3:0.9]
set logscale x 2
set xtics ({xtics})
set grid ytics lc rgb "#dddddd"
set key top left textcolor rgb "#1a1d21"
plot $measured using 1:3:4 with filledcurves fc rgb "#0072b2" fs transparent solid 0.2 notitle, \\
     $measured using 1:2 with linespoints lw 2 pt 7 ps 0.6 lc rgb "#0072b2" title "outcomes as measured", \\
     $shuffled using 1:3:4 with filledcurves fc rgb "#d55e00" fs transparent solid 0.2 notitle, \\
     $shuffled using 1:2 with linespoints lw 2 pt 5 ps 0.6 lc rgb "#d55e00" title "outcomes shuffled", \\
     0.5 with lines dt 2 lc rgb "#555555" title "chance"
"""


def draw(found, out):
    blocks = ""
    for outcomes in ("measured", "shuffled"):
        lines = [row for row in found["curve"] if row["outcomes"] == outcomes]
        points = [(found["most_rows"] if row["rows"] == "all" else row["rows"], *(row["faster_first"][k] for k in ("value", "low", "high"))) for row in lines]
        blocks += f"${outcomes} << E\n" + "\n".join(" ".join(f"{v:.5g}" for v in point) for point in points) + "\nE\n"
    xtics = ", ".join(f'"{n}" {n}' for n in (*SIZES[:4], found["most_rows"]))
    drawn = subprocess.run(["gnuplot", "-d", "-"], input=blocks + PLOT.format(xtics=xtics), capture_output=True, text=True, check=True).stdout
    last = [row["faster_first"]["value"] for row in found["curve"] if row["rows"] == "all"]
    words = f"of two proposals the faster one is ranked first: {last[0]:.2f} when fitted on all rows, {last[1]:.2f} with shuffled outcomes, chance 0.5"
    out.write_text(drawn.replace("<svg", f'<svg role="img" aria-label="{words}"', 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=ROOT / "library")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--draw", type=Path, nargs=2, metavar=("FILE", "OUT"))
    options = parser.parse_args()
    if options.draw:
        draw(json.loads(options.draw[0].read_text()), options.draw[1])
        return
    rows, facts = rows_of(options.library)
    data = Data(rows, facts)
    per_task = [int((data.task == task).sum()) for task in set(data.task)]
    found = {"rows": len(rows), "tasks": len(per_task), "most_rows": len(rows) - min(per_task), "draws": options.draws,
             "curve": curve(data, options.draws, np.random.default_rng(1))}
    text = json.dumps(found, indent=1) + "\n"
    print(text, end="")
    if options.json:
        options.json.write_text(text)


if __name__ == "__main__":
    main()
