#!/usr/bin/env python3
"""What peers.py and gate_cost.py make of measurements, on series whose law is known; times nothing."""
import random
import sys
import time
import types
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import gate_cost
import peers

CASE = types.SimpleNamespace(size="3us")
OPTIONS = types.SimpleNamespace(repeats=40)


class Drawn(peers.Tool):
    """A tool whose ratio spreads as the root of its effort says: by `cv` at level 0, after `seconds`."""

    def __init__(self, cv, seconds):
        super().__init__(types.SimpleNamespace(scratch="/nowhere"))
        self.cv, self.seconds, self.random = cv, seconds, random.Random(7)

    def measure(self, case, level):
        return {"command": [level], "ratio": self.random.gauss(1, self.cv * 2 ** (-level / 2)), "half": 2 * self.cv * 2 ** (-level / 2), "samples": 1,
                "seconds": self.seconds * 2**level}


def equal(tool, level, cv):
    first = peers.repeat(tool, CASE, level, OPTIONS.repeats)
    return peers.to_equal(tool, CASE, first, cv, OPTIONS, time.monotonic() + 1e6)


class Intervals(unittest.TestCase):
    def test_intervals_hold_the_true_ratio_about_as_often_as_they_say(self):
        source = random.Random(1)
        for center, count in ((peers.median_width, 100), (peers.mean_width, 10), (peers.mean_width, 100)):
            held = 0
            for _ in range(400):
                a, b = ([source.gauss(1, 0.02) for _ in range(count)] for _ in range(2))
                found = peers.ratio_of(a, b, center)
                held += abs(found["ratio"] - 1) <= found["half"]
            self.assertTrue(0.91 < held / 400 < 0.99, (center.__name__, count, held))

    def test_the_ratio_is_of_the_second_over_the_first(self):
        self.assertEqual(peers.ratio_of([2.0, 2.0], [3.0, 3.0], peers.mean_width)["ratio"], 1.5)


class Efforts(unittest.TestCase):
    def test_the_own_effort_brings_the_interval_to_half_a_percent(self):
        tool = Drawn(0.01, 0.01)
        level = peers.own_effort(tool, CASE)
        self.assertLessEqual(tool.measure(CASE, level)["half"], peers.HALF_WIDTH)
        self.assertGreater(tool.measure(CASE, level - 1)["half"], peers.HALF_WIDTH)

    def test_the_own_effort_ends_where_the_time_does(self):
        level = peers.own_effort(Drawn(1, 0.5), CASE)
        self.assertEqual(level, 2)

    def test_a_tool_that_spreads_more_gets_more_effort_until_it_does_not(self):
        levels = equal(Drawn(0.01, 0.01), 0, 0.002)
        self.assertGreater(levels[0]["cv"], 0.002)
        self.assertLessEqual(levels[-1]["cv"], 0.002)
        self.assertIn(levels[-1]["level"], range(4, 8))

    def test_a_tool_that_spreads_less_gets_less_effort_until_it_does_not(self):
        levels = equal(Drawn(0.001, 0.01), 0, 0.0015)
        self.assertLess(levels[-1]["level"], 0)
        self.assertTrue(any(level["cv"] <= 0.0015 for level in levels))

    def test_no_measurement_is_asked_to_outlast_the_longest(self):
        levels = equal(Drawn(1, 1), 0, 0.001)
        self.assertLessEqual(max(level["seconds"] for level in levels), peers.LONGEST_S)
        self.assertGreater(levels[-1]["cv"], 0.001)

    def test_no_level_below_the_least(self):
        self.assertEqual(peers.next_level({"cv": 1e-5, "level": -1, "seconds": 1}, 0.1, -2), -2)


class Standing(unittest.TestCase):
    def test_ahead_is_said_only_of_what_was_measured(self):
        slow, quick = ({"levels": [{"seconds": s}], "equal": {"seconds": s}} for s in (2, 0.1))
        never, barely = ({"levels": [{"seconds": s}], "equal": None} for s in (2, 0.1))
        said = [gate_cost.standing(tool, 1) for tool in (slow, quick, never, barely)]
        self.assertEqual(said, ["ahead of", "behind", "ahead of", "undecided beside"])


class Programs(unittest.TestCase):
    def test_what_ends_without_an_answer_says_why(self):
        shown = {"sleep": (["sleep", "30"], 0.2, "did not end"), "false": (["false"], 5, "ended with 1"), "missing": (["/nowhere/x"], 5, "No such file")}
        for command, limit, words in shown.values():
            found = gate_cost.measured(command, limit, len)
            self.assertIn(words, found["why"])
            self.assertNotIn("result", found)

    def test_an_answer_is_kept(self):
        self.assertEqual(gate_cost.measured(["echo", "[1, 2]"], 5, len)["result"], [1, 2])


if __name__ == "__main__":
    unittest.main()
