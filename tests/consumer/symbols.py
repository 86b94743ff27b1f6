#!/usr/bin/env python3
"""symbols.py HEADERS LIBDIR - the libraries export what the public headers declare: no more, no less, each symbol once.

And what they can write to outside of any handle is what STATE lists: whoever uses them twice in a process shares it.
SPDX-License-Identifier: Apache-2.0"""
import pathlib
import re
import subprocess
import sys

HEADERS, LIBDIR = map(pathlib.Path, sys.argv[1:])
GATE = ["base", "task", "surface", "kernel", "backend", "gate", "executor"]
NOT_OURS = ["klineage", "limits", "plugin"]  # of plugin.h, a plugin defines what is declared

STATE = {
    "current": "of a thread: who watches its calls (kl_monitor_use)",
    "nobodys": "of a thread: the error that nobody reads",
    "text": "of a thread: room for a file of /proc",
    "known": "of a thread: what an exchange with a runner on its core costs",
    "probed": "the devices of this machine, under a lock",
    "confinement": "what the kernel here can confine a process with, found once",
    "confinement_once": "the same",
    "toolkit": "the Triton that is installed, looked for once",
    "toolkit_once": "the same",
    "temp": "temporary folders that are held, under a lock",
    "package": "the Python that has Triton, asked for once",
    "tilelang_package": "the Python that has TileLang, asked for once",
    "package_once": "the same",
    "servers": "warm compilers, each used by one thread at a time, under a lock",
    "servers_lock": "the same",
    "curl": "libcurl, once it was loaded, under a lock",
    "pq": "libpq, likewise",
    "serials": "numbers of leases, atomic",
}


def writable(library):
    """Variables of ours that are neither constant nor on a stack or heap."""
    def table(flag):
        return subprocess.run(["readelf", flag, str(library)], check=True, capture_output=True, text=True).stdout
    sections = dict(re.findall(r"\[ *(\d+)\] (\.t?(?:data|bss))\s", table("-SW")))
    rows = re.findall(r"^ *\d+: \w+ +([1-9]\d*) (?:OBJECT|TLS) +\w+ +\w+ +(\d+) (\w+)", table("-sW"), re.M)
    return {name for size, section, name in rows if section in sections} - {"completed", "__cpu_model", "__cpu_features2"}


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
    state = writable(LIBDIR / f"lib{name}.so")
    for variable in sorted(state - STATE.keys()):
        print(f"lib{name}.so: {variable} is state of the whole process; keep it in a handle, or say in STATE why not")
    wrong = wrong or not state <= STATE.keys()
sys.exit(wrong)
