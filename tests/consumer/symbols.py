#!/usr/bin/env python3
"""symbols.py HEADERS LIBDIR - the libraries export what the public headers declare: no more, no less, each symbol once.
SPDX-License-Identifier: Apache-2.0"""
import pathlib
import re
import subprocess
import sys

HEADERS, LIBDIR = map(pathlib.Path, sys.argv[1:])
GATE = ["base", "task", "surface", "kernel", "backend", "gate", "executor"]
NOT_OURS = ["klineage", "limits", "plugin"]  # of plugin.h, a plugin defines what is declared


def declared(header):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", header.read_text(), flags=re.S)
    text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    text = re.sub(r"\btypedef\s[^;{]*;", "", text)  # types of functions
    data = re.findall(r"\bextern const \w+ (\w+)\s*[;\[]", text)
    return set(re.findall(r"\b(kl_\w+)\s*\((?!\s*\*)", text)) | set(data)


def exported(*nm):
    lines = subprocess.run(["nm", "--defined-only", *map(str, nm)], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"^[0-9a-f]+ [A-Z] (\w+)$", lines, re.M))


rest = [h.stem for h in sorted(HEADERS.glob("*.h")) if h.stem not in GATE + NOT_OURS]
wrong = False
for name, headers in ("klgate", GATE), ("klineage", rest):
    wanted = set().union(*(declared(HEADERS / f"{h}.h") for h in headers))
    for what, have in ((f"lib{name}.so", exported("-D", LIBDIR / f"lib{name}.so")),
                       (f"lib{name}.a", exported("-g", LIBDIR / f"lib{name}.a"))):
        for symbol in sorted(have - wanted):
            print(f"{what}: {symbol} is visible and in none of its headers")
        for symbol in sorted(wanted - have):
            print(f"{what}: {symbol} is declared and not there")
        print(f"{what}: {len(have)} symbols")
        wrong = wrong or have != wanted
sys.exit(wrong)
