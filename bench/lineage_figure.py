#!/usr/bin/env python3
"""lineage_figure.py - a lineage as one picture: the speed of every state over the vendor's library, and which optimization led to it.

usage: bench/lineage_figure.py LINEAGE.json OUT.svg        (gnuplot draws; OUT-dark.svg is the same for dark ground)

Bars are the states' own verdicts against the task's primary baseline; a label is the edge's gain, timed state against state.  Edges whose
measured gain is no clear gain are grey.  Narrow, with bars that lie, so that its words can be read on a phone.  SPDX-License-Identifier: Apache-2.0"""
import html
import json
import pathlib
import re
import subprocess
import sys

# Of src/report/colours.def: what a picture needs of it.
LIGHT = dict(page="#ffffff", ink="#1a1d21", soft="#545c66", axis="#767d85", grid="#e1e5ea", bar="#2f6da8", flat="#858e98")
DARK = dict(page="#14181d", ink="#e8eaed", soft="#aab3bd", axis="#8b949e", grid="#2d343c", bar="#5aa2e0", flat="#6f7984")
SCRIPT = """set encoding utf8
set terminal svg size 620,{height} dynamic noenhanced font 'sans-serif,15' background '{page}'
set border 1 lc rgb '{axis}'
set tics nomirror out scale 0.5 textcolor rgb '{ink}'
set ytics scale 0
set grid x lc rgb '{grid}' lt 1
unset mxtics
unset key
set logscale x
set xrange [{low}:{high}]
set yrange [{last}.6:-0.6]
set tmargin 0.6
set format x '%g ×'
set xtics 10
set xlabel 'speed over {baseline}, log scale' textcolor rgb '{soft}'
set arrow from first 1, graph 0 to first 1, graph 1 nohead dt 2 lw 1.5 lc rgb '{soft}'
set label '{baseline}' at first 1, first 0 left offset 0.5,0 textcolor rgb '{soft}'
$states << EOD
{rows}
EOD
plot $states using 2:1:({low}):2:($1-0.32):($1+0.32):3:ytic(5) with boxxyerror fs solid 1 noborder lc rgb variable, \\
     $states using ($2 > 0.25 && $2 < 1 ? 1 : $2):1:4 with labels left offset 0.5,0 textcolor rgb '{ink}'
"""


def rows(lineage, colours):
    edges = [None] + lineage["edges"]
    for i, (state, edge) in enumerate(zip(lineage["states"], edges)):
        gain = edge["gain"]["ratio"] if edge else None
        colour = colours["bar" if not edge or edge["pays"] else "flat"].replace("#", "0x")
        label = "" if gain is None else f"{gain:.2g} ×" if gain >= 2 else f"{gain:.2f} ×"
        name = (edge["action"].removeprefix("other:") if edge else "naive").replace("_", " ")
        yield f'{i} {state["ratio"]:.6g} {colour} "{label}" "{name}"'


def baseline_of(evidence, key):
    """What the last state was timed against."""
    for line in evidence.read_text().splitlines():
        row = json.loads(line)
        if row["key"] == key:
            name = row["verdict"]["time"]["vs"][0]["baseline"]
            return {"cublas": "cuBLAS", "cudnn": "cuDNN", "openblas": "OpenBLAS", "onednn": "oneDNN"}.get(name, name)
    raise SystemExit(f"{evidence} does not hold the verdict {key[:12]}")


def alternative(lineage, baseline):
    """What is to be seen, in words."""
    steps = "; ".join(f'{e["action"].removeprefix("other:").replace("_", " ")} {e["gain"]["ratio"]:.3g} x' for e in lineage["edges"])
    first, last = (lineage["states"][i]["ratio"] for i in (0, -1))
    return f'Speed over {baseline}: naive {first:.2g} x, the expert {last:.3g} x; gains of the steps between them: {steps}'


def draw(lineage, baseline, colours):
    ratios = [s["ratio"] for s in lineage["states"]]
    script = SCRIPT.format(low=min(ratios) / 1.6, high=max(max(ratios), 1) * 9, last=len(ratios) - 1, height=24 * len(ratios) + 70, baseline=baseline,
                           rows="\n".join(rows(lineage, colours)), **colours)
    drawn = subprocess.run(["gnuplot", "-d", "-"], input=script, capture_output=True, text=True, check=True).stdout
    drawn = re.sub(r"<title>.*?</title>|<desc>.*?</desc>", "", drawn, flags=re.S)
    return drawn.replace("<svg", f'<svg role="img" aria-label="{html.escape(alternative(lineage, baseline))}"', 1)


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    lineage = json.loads(source.read_text())
    baseline = baseline_of(source.with_suffix(".evidence.jsonl"), lineage["states"][-1]["verdict"])
    out.write_text(draw(lineage, baseline, LIGHT))
    out.with_stem(out.stem + "-dark").write_text(draw(lineage, baseline, DARK))


if __name__ == "__main__":
    main()
