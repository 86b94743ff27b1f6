#!/usr/bin/env python3
"""Fits the gain model of a library, and says how good it is on tasks that it has not seen.

    bench/gain.py [--library library] [--check]

Reads LIBRARY/probes.jsonl and states.jsonl (klineage probe export), writes LIBRARY/gain.txt; --check
writes nothing and prints the figures alone. Needs numpy and scikit-learn.

Two models over the features of include/klineage/skill.def and one effect for each action:
    P(faster)            logistic regression, ridge penalty
    log gain | faster    Bayesian ridge: posterior mean and covariance
Held out is a whole task at a time. What has to be chosen (penalty, width of the intervals) is chosen
on the other tasks, each in turn held out among those. src/skill/gain.c evaluates the file."""
import argparse
import hashlib
import json
import math
import re
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import BayesianRidge, LogisticRegression

ROOT = Path(__file__).resolve().parent.parent
LEAST = 60  # rows below which no model is fitted: cards show their outcomes
PENALTIES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # inverse strengths of the logistic ridge
NORMAL_80 = 1.2815515655446004


def features():
    return re.findall(r'^KL_DEF_FEATURE\(\w+,\s*"(\w+)"', (ROOT / "include/klineage/skill.def").read_text(), re.MULTILINE)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def rows_of(library):
    """One row an application that says yes or no of a state that is known: sorted, so that the fit repeats."""
    facts = {state["hash"]: state["facts"] for state in lines(library / "states.jsonl")}
    kept = [row for row in lines(library / "probes.jsonl") if row["outcome"] != "undecided" and row["action"] and row["state"] in facts]
    return sorted(kept, key=lambda row: row["place"]), facts


class Data:
    def __init__(self, rows, facts):
        names = features()
        self.task = np.array([row["task"] for row in rows])
        self.action = np.array([row["action"] for row in rows])
        self.x = np.array([[facts[row["state"]].get(f"gain.{name}", math.nan) for name in names] for row in rows])
        self.faster = np.array([row["outcome"] == "faster" for row in rows])
        self.log_gain = np.array([math.log(row["gain"]) if row["outcome"] == "faster" else 0.0 for row in rows])

    def part(self, chosen):
        part = object.__new__(Data)
        part.__dict__ = {name: value[chosen] for name, value in self.__dict__.items()}
        return part


class Fit:
    def __init__(self, data, penalty):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a feature that nobody knows has no mean
            self.mean = np.nan_to_num(np.nanmean(data.x, axis=0))
            self.scale = np.nan_to_num(np.nanstd(data.x, axis=0))
        self.scale[self.scale == 0] = 1
        self.actions = sorted(set(data.action))
        design = self.design(data.x, data.action)
        self.passing = LogisticRegression(C=penalty, max_iter=1000).fit(design, data.faster)
        self.gaining = BayesianRidge().fit(design[data.faster], data.log_gain[data.faster])

    def design(self, x, action):
        features = np.where(np.isnan(x), 0, (x - self.mean) / self.scale)
        effects = np.array([[name == known for known in self.actions] for name in action], float).reshape(len(action), -1)
        return np.hstack([features, effects])

    def predict(self, data):
        """P(faster), mean and standard deviation of log gain."""
        design = self.design(data.x, data.action)
        mean, deviation = self.gaining.predict(design, return_std=True)
        unseen = ~np.isin(data.action, self.actions)
        deviation = np.sqrt(deviation**2 + unseen / self.gaining.lambda_)  # an effect of its own that nobody has seen
        return self.passing.predict_proba(design)[:, 1], mean, deviation


def held_out(data, penalty):
    """Predictions for each row by a model that has not seen its task; NaN where the rest teaches nothing."""
    out = np.full((3, len(data.task)), math.nan)
    for task in sorted(set(data.task)):
        here = data.task == task
        rest = data.part(~here)
        if rest.faster.sum() > 2 and not rest.faster.all():
            out[:, here] = Fit(rest, penalty).predict(data.part(here))
    return out


def brier(data, p):
    return float(np.nanmean((p - data.faster) ** 2))


def choose(data):
    """The penalty, and what standard deviations have to be multiplied by for 80 of 100 to lie inside."""
    penalty = min(PENALTIES, key=lambda c: brier(data, held_out(data, c)[0]))
    _, mean, deviation = held_out(data, penalty)
    z = (np.abs(data.log_gain - mean) / deviation)[data.faster]
    z = z[np.isfinite(z)]
    return penalty, float(np.quantile(z, 0.8) / NORMAL_80) if len(z) else 1.0


def unseen(data):
    """P(faster), mean and deviation of log gain, and the plain share, of each row by what the other tasks alone teach."""
    p, mean, deviation, base = (np.full(len(data.task), math.nan) for _ in range(4))
    for task in sorted(set(data.task)):
        here = data.task == task
        rest = data.part(~here)
        penalty, widen = choose(rest)
        p[here], mean[here], deviation[here] = Fit(rest, penalty).predict(data.part(here))
        deviation[here] *= widen
        base[here] = rest.faster.mean()
    return p, mean, deviation, base


def measure(data):
    p, mean, deviation, base = unseen(data)
    f, log_gain = data.faster, data.log_gain
    slope = float(np.polyfit(mean[f], log_gain[f], 1)[0])
    inside = np.abs(log_gain - mean)[f] <= NORMAL_80 * deviation[f]
    return {"rows": len(f), "tasks": len(set(data.task)), "faster": int(f.sum()), "brier": brier(data, p), "brier_base": brier(data, base), "slope": slope,
            "coverage": float(inside.mean()), "error": float(np.abs(log_gain - mean)[f].mean()), "spread": float(np.abs(log_gain[f] - log_gain[f].mean()).mean())}


def text_of(data, fit, widen, digest, figures):
    """What src/skill/gain.c reads: a word and its numbers a line."""
    names = features()
    n = len(names)
    sigma = fit.gaining.sigma_
    out = ["klineage gain model 1", f"rows {len(data.task)} tasks {len(set(data.task))} sha256 {digest}"]
    out.append("held_out " + " ".join(f"{key} {figures[key]:.4g}" for key in ("brier", "brier_base", "slope", "coverage")))
    out.append(f"intercept {fit.passing.intercept_[0]:.9g} {fit.gaining.intercept_:.9g}")
    out.append(f"noise {1 / fit.gaining.alpha_:.9g}  effects {1 / fit.gaining.lambda_:.9g}  widen {widen:.9g}")
    for i, name in enumerate(names):
        row = " ".join(f"{v:.9g}" for v in sigma[i, :n])
        out.append(f"feature {name} {fit.mean[i]:.9g} {fit.scale[i]:.9g} {fit.passing.coef_[0][i]:.9g} {fit.gaining.coef_[i]:.9g}  {row}")
    for k, action in enumerate(fit.actions):
        count = int((data.action == action).sum())
        row = " ".join(f"{v:.9g}" for v in sigma[n + k, :n])
        out.append(f"effect {action} {count} {fit.passing.coef_[0][n + k]:.9g} {fit.gaining.coef_[n + k]:.9g} {sigma[n + k, n + k]:.9g}  {row}")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=ROOT / "library")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    rows, facts = rows_of(options.library)
    if len(rows) < LEAST:
        raise SystemExit(f"{len(rows)} rows: below {LEAST} no model is fitted")
    data = Data(rows, facts)
    figures = measure(data)
    for key, value in figures.items():
        print(f"{key:12} {value:.4g}")
    if not options.check:
        digest = hashlib.sha256("".join(f"{row['place']} {row['outcome']}\n" for row in rows).encode()).hexdigest()
        penalty, widen = choose(data)
        (options.library / "gain.txt").write_text(text_of(data, Fit(data, penalty), widen, digest, figures))


if __name__ == "__main__":
    main()
