#!/usr/bin/env python3
"""What when.py makes of tracks whose arms differ by a known amount; times nothing."""
import math
import random
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import when

when.DRAWS = 400
TASKS, TRIALS = range(8), range(1, 6)


def track(arm, task, trial, log_gain, dollars=0.25, withheld=None, **more):
    note = "" if arm == "none" else f"cards: {arm}" + ("; withheld" + "".join(f" {c}" for c in withheld) if withheld is not None else "")
    return {"track": f"t{task}/{arm}/{trial}", "workload": f"t{task}", "policy": "a name that says nothing", "trial": trial, "stopped": "budget", "never_asked": False,
            "solved": log_gain > 0, "gain": {"ratio": math.exp(log_gain)}, "spent_microusd": round(dollars * 1e6), "arm": note,
            "curve": [[0, 1, 0], [dollars, math.exp(log_gain), 1], [dollars, math.exp(log_gain), 1]]} | more


def found_in(tracks, again=None):
    return when.analyse({"tracks": tracks}, again or {})


def comparison(found, arm, other, measure="log gain per dollar"):
    return next(r for r in found["comparisons"] if (r["arm"], r["over"], r["measure"]) == (arm, other, measure))


def drawn(seed, effect, spread=0.1):
    source = random.Random(seed)
    hard = {t: source.gauss(1, 0.5) for t in TASKS}
    return [track(arm, t, i, hard[t] + source.gauss(0, spread) + more) for arm, more in (("none", 0), ("ours", effect)) for t in TASKS for i in TRIALS]


class Arms(unittest.TestCase):
    def test_a_difference_is_found_and_paired(self):
        row = comparison(found_in(drawn(1, 0.2)), "ours", "none")
        self.assertEqual((row["pairs"], row["tasks"]), (40, 8))
        self.assertAlmostEqual(row["difference"], 0.2 / 0.25, delta=0.3)
        self.assertGreater(row["low"], 0.4)
        self.assertLess(row["detectable"], 0.4)  # though the tasks themselves differ ten times as much

    def test_intervals_hold_no_difference_about_as_often_as_they_say(self):
        rows = [comparison(found_in(drawn(seed, 0)), "ours", "none") for seed in range(40)]
        self.assertGreaterEqual(sum(r["low"] <= 0 <= r["high"] for r in rows), 34)

    def test_what_did_not_win_gained_nothing(self):
        found = found_in([track("ours", 0, 1, -0.3), track("ours", 1, 1, 0.5)])
        self.assertAlmostEqual(found["arms"]["ours"]["log gain"], 0.25)
        self.assertAlmostEqual(found["arms"]["ours"]["succeeded"], 0.5)

    def test_what_did_not_end_is_counted_and_left_out(self):
        found = found_in([track("ours", 0, 1, 0.5), track("ours", 0, 2, 5, stopped=None), track("ours", 0, 3, 5, never_asked=True)])
        self.assertEqual(found["left_out"], {"not ended": 1, "never asked": 1})
        self.assertEqual(found["arms"]["ours"]["tracks"], 1)

    def test_a_gain_measured_once_more_takes_the_place_of_the_first(self):
        found = found_in([track("ours", 0, 1, 0.5)], {"t0/ours/1": {"ratio": 1.0}})
        self.assertEqual(found["arms"]["ours"]["log gain"], 0)

    def test_a_card_has_an_effect_of_its_own(self):
        source, tracks = random.Random(3), []
        for t in TASKS:
            for i in TRIALS:
                withheld = [c for c in ("good", "idle") if source.random() < 0.4]
                tracks.append(track("ours", t, i, 1 + 0.2 * t + (0 if "good" in withheld else 0.3) + source.gauss(0, 0.05), withheld=withheld))
        cards = {r["card"]: r for r in found_in(tracks)["cards"]}
        self.assertAlmostEqual(cards["good"]["effect"], 0.3, delta=0.1)
        self.assertGreater(cards["good"]["low"], 0.1)
        self.assertLess(abs(cards["idle"]["effect"]), 0.15)


if __name__ == "__main__":
    unittest.main()
