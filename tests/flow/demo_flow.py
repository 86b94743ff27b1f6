#!/usr/bin/env python3
"""demo_flow.py - `./run demo` as somebody with a busy machine meets it: it ends well, and says what the noise hides.

Where KLINEAGE_TEST_SHARE asks for a part of the tests, the machine is left alone, and the demo takes less time.  Driven like flow.py, whose Place it shares; registered to run alone, for its load would disturb every other test.  SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys

import flow

LIMIT_SECONDS = 1500
MOST_BYTES = 6 << 30  # of memory that the load works on


def memory_share(share):
    available = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(int(available * share), MOST_BYTES)


@contextlib.contextmanager
def load():
    """A process for each of two cores beside the demo, one of which walks through memory; without stress-ng, spinning processes alone.
    More of it makes nothing else happen, and the demo longer by its share."""
    if os.environ.get("KLINEAGE_TEST_SHARE"):
        print("without the load, since a part of the tests is asked for")
        yield
        return
    if shutil.which("stress-ng"):
        words = [["stress-ng", "--quiet", "--cpu", "1", "--vm", "1", "--vm-bytes", str(memory_share(0.6)), "--timeout", f"{LIMIT_SECONDS}s"]]
    else:
        words = [["timeout", str(LIMIT_SECONDS), sys.executable, "-c", "while True: pass"]] * 2
    others = [subprocess.Popen(w, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for w in words]
    try:
        yield
        assert all(o.poll() is None for o in others), "the load ended before the demo, so nothing was tried"
    finally:
        for o in others:
            o.terminate()
            o.wait()


def test_demo_beside_a_heavy_load(p):
    place = p.folder / "demo"
    env = {**p.env, "KLINEAGE_PROGRAM": p.program, "KLINEAGE_DEMO": str(place)}
    with load():
        done = subprocess.run([p.source / "run", "demo"], env=env, cwd=p.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_SECONDS)
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, said
    for word in ("== In short", "7 steps from naive", "register_block_simd", f"Everything on one page: {place}/report.html"):
        assert word in said, f"'{word}' was not said: {said}"
    for never in ("the recording has no answer for the slot", "defect of klineage", "klineage: bug:", "Sanitizer"):
        assert never not in said, said
    walk = json.loads((place / "gemm.json").read_text())
    assert walk["termination"]["how"] == "complete" and walk["model"] == "replay of mailbox", walk["termination"]
    for edge in walk["edges"]:
        assert edge["pays"] == (edge["gain"]["call"] == "faster"), edge["gain"]
        assert edge.get("decided") != "recorded" or edge["here"], edge["action"]
    assert "pack_b" in (place / "report.html").read_text()


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
