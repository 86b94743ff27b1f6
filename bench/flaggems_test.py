#!/usr/bin/env python3
"""What flaggems.py makes of invented kernels: one file of several, and their configurations; runs none."""
import importlib.util
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
if importlib.util.find_spec("yaml") is None:
    print("skipped: flaggems.py needs PyYAML")
    sys.exit(77)
import flaggems

HEAD = "#! surface triton\n#! param B = 32 {{32, 64}}\n#! launch {name} grid(1) args()\n# Extracted by hand\nimport triton\n"
HELPER = "\n\n@triton.jit\ndef twice(x): return x + x\n"
RECIPE = {"extract": {"A": "pack:one", "Z": "pack:two"}, "task": "invented"}


def extracted(name, helper=HELPER):
    return HEAD.format(name=name) + helper + f"\n\n@triton.jit\ndef {name}(B): twice(B)\n"


class Together(unittest.TestCase):
    def test_params_are_told_apart_and_what_both_have_is_there_once(self):
        text = flaggems.together({"A_": extracted("one"), "Z_": extracted("two")})
        self.assertTrue(text.startswith("#! surface triton\n#! param A_B = 32 {32, 64}\n#! param Z_B = 32 {32, 64}\n# Extracted"))
        self.assertEqual([text.count(f"def {name}(") for name in ("one", "two", "twice")], [1, 1, 1])
        self.assertNotIn("#! launch", text)

    def test_one_name_for_two_things_is_refused(self):
        with self.assertRaisesRegex(ValueError, "'twice'"):
            flaggems.together({"A_": extracted("one"), "Z_": extracted("two", HELPER.replace("x + x", "2 * x"))})
        with self.assertRaisesRegex(ValueError, "'MORE'"):
            flaggems.together({"A_": extracted("one", "MORE = 1\n" + HELPER), "Z_": extracted("two", "MORE = 2\n" + HELPER)})


class Configurations(unittest.TestCase):
    def found(self, recipe, tuners):
        path = mock.Mock(read_text=lambda: "".join(f"#! param {name} = 1\n" for name in ("A_B", "A_WARPS", "Z_B", "B", "WARPS")))
        with mock.patch.object(flaggems.subprocess, "run", side_effect=[mock.Mock(stdout=tuner) for tuner in tuners]):
            return [" ".join(words[1::2]) for words in flaggems.configurations(mock.Mock(arch="sm_90a"), recipe, path)]

    def test_one_kernel_at_a_time_is_tried(self):
        tuners = ['[{"B": 32, "num_warps": 2}, {"B": 64, "num_warps": 2}]', '[{"B": 16}, {"B": 8, "num_stages": 3}]']
        self.assertEqual(self.found(RECIPE, tuners), ["A_B=32 A_WARPS=2 Z_B=16", "A_B=64 A_WARPS=2 Z_B=16", "A_B=32 A_WARPS=2 Z_B=8"])

    def test_a_kernel_alone_keeps_the_names_of_its_params(self):
        self.assertEqual(self.found({"extract": "pack:one"}, ['[{"B": 32, "num_warps": 2}]']), ["B=32 WARPS=2"])
        self.assertEqual(self.found({"extract": "pack:one"}, ["[]"]), [""])


class Joined(unittest.TestCase):
    first = flaggems.words_of({"A_B": 1, "A_WARPS": 4, "Z_B": 1})

    def joined(self, *ranked):
        return flaggems.params_of(flaggems.joined(self.first, [flaggems.words_of(flaggems.params_of(self.first) | changed) for changed in ranked]))

    def test_the_fastest_of_each_kernel_is_taken(self):
        self.assertEqual(self.joined({"Z_B": 2}, {"A_B": 2, "A_WARPS": 8}, {"A_B": 3}, {"Z_B": 3}, {}), {"A_B": 2, "A_WARPS": 8, "Z_B": 2})

    def test_what_is_slower_than_the_first_configuration_is_not(self):
        self.assertEqual(self.joined({"A_B": 2}, {}, {"Z_B": 2}), {"A_B": 2, "A_WARPS": 4, "Z_B": 1})

    def test_it_is_tried_once_and_of_several_kernels_alone(self):
        ranked = [(1, "two", flaggems.words_of({"A_B": 2, "A_WARPS": 4, "Z_B": 1})), (2, "two", flaggems.words_of({"A_B": 1, "A_WARPS": 4, "Z_B": 2}))]
        recipes, files = {"kernels": {"two": RECIPE, "one": {"extract": "pack:one"}}}, {"two": (None, [self.first]), "one": (None, [[]])}
        asked = flaggems.joined_of(recipes, {"name": "x", "kernels": ["one", "two"]}, files, {"x": {"ranked": ranked + [(3, "one", [])]}})
        self.assertEqual([(name, flaggems.params_of(words)) for name, words in asked], [("two", {"A_B": 2, "A_WARPS": 4, "Z_B": 2})])
        self.assertEqual(list(flaggems.joined_of(recipes, {"name": "x", "kernels": ["two"]}, files, {"x": {"ranked": ranked[:1]}})), [])


if __name__ == "__main__":
    unittest.main()
