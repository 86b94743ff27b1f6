#!/usr/bin/env python3
"""What report makes of invented results; measures nothing."""
import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
loader = importlib.machinery.SourceFileLoader("report", str(Path(__file__).resolve().parent / "report"))
report = importlib.util.module_from_spec(importlib.util.spec_from_loader("report", loader))
loader.exec_module(report)


def versus(ratio, call):
    return {"ratio": ratio, "low": ratio - 0.01, "high": ratio + 0.01, "floor": 0.002, "pairs": 9, "call": call, "described": "", "baseline_ns": 1}


ROW = {"name": "Invented 1", "best": "kernel", "params": ["BLOCK=64", "WARPS=4"], "tried": 7, "timed": 5, "outcome": "pass", "why": "", "median_ns": 1500000,
       "versus": {"torch": versus(0.9, "slower"), "naive": versus(12, "faster")},
       "jit": {"degradations": [], "versus": {"flag_gems": versus(1.001, "same"), "jit": versus(1.25, "faster")}}}


def cells(row):
    return list(next(iter(report.held_out_rows({"instances": [row]}))))


class HeldOut(unittest.TestCase):
    def test_an_instance_shows_its_kernel_and_all_ratios(self):
        self.assertEqual(cells(ROW), ["Invented 1", "`kernel`", "BLOCK=64 WARPS=4", "5 of 7", "1.5 ms", "torch **0.9** [0.89, 0.91], naive **12** [11.99, 12.01]",
                                      "1.001 [0.991, 1.011], same (floor 0.2 %)", "1.25 [1.24, 1.26], faster (floor 0.2 %)"])

    def test_a_package_that_could_not_be_timed_says_why(self):
        row = ROW | {"jit": {"degradations": ["baseline flag_gems is not available: no module"], "versus": {"jit": versus(1, "same")}}}
        self.assertEqual(cells(row)[6], "no module")
        self.assertEqual(cells(row | {"jit": {"degradations": [], "versus": {}}, "package_failed": "it fell over"})[6], "it fell over")
        self.assertEqual(cells({key: value for key, value in ROW.items() if key != "jit"})[6:], ["not measured"] * 2)

    def test_no_time_is_shown_where_there_was_none(self):
        shown = cells({"name": "Invented 2", "tried": 3, "timed": 0, "not_timed": ["refused: too much shared memory"]})
        self.assertIn("too much shared memory", shown[4])
        self.assertEqual(shown[5:], ["", "", ""])
        self.assertIn("unstable", cells(ROW | {"outcome": "unstable"})[4])

    def test_prototypes_stand_below(self):
        text = report.held_out({"package": "invented==1", "instances": [ROW]},
                               {"saxpy": versus(1, "same") | {"us": 3, "jit_us": 3.01}, "flash": {"outcome": "error", "why": "no device"}})
        self.assertIn("| saxpy | 3 µs | 3.01 µs | 1 [0.99, 1.01], same (floor 0.2 %) |", text)
        self.assertIn("| flash | error: no device |  |  |", text)


if __name__ == "__main__":
    unittest.main()
