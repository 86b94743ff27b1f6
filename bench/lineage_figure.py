#!/usr/bin/env python3
"""lineage_figure.py - a lineage as one picture: the speed of every state over the vendor's library, and which optimization led to it.

usage: bench/lineage_figure.py LINEAGE.json OUT.svg        (gnuplot draws)

Bars are the states' own verdicts against the task's primary baseline; a label is the edge's gain, timed state against state.  Edges whose
measured gain is no clear gain are grey.  SPDX-License-Identifier: Apache-2.0"""
import json
import pathlib
import subprocess
import sys

SCRIPT = """set encoding utf8
set terminal svg size 920,400 dynamic enhanced font 'sans-serif,13' background '#ffffff'
set border 3 lc rgb '#666666'
set tics nomirror out textcolor rgb '#333333'
set grid y lc rgb '#e2e2e2'
set logscale y
set yrange [{low}:{high}]
set xrange [-0.8:{last}.8]
set format y '%g ×'
set ylabel 'speed over {baseline}, log scale' textcolor rgb '#333333'
set title "{title}" textcolor rgb '#111111' font 'sans-serif,14'
set xtics rotate by -40 left
set boxwidth 0.72
set style fill solid 1.0
unset key
set arrow from graph 0,first 1 to graph 1,first 1 nohead dt 2 lw 1.5 lc rgb '#b03a2e' back
set label '{baseline}' at graph 0.01,first 1.4 left textcolor rgb '#b03a2e'
$states << EOD
{rows}
EOD
plot $states using 1:2:3:xtic(5) with boxes lc rgb variable, $states using 1:($2*1.45 > 0.6 && $2*1.45 < 2 ? 1.8 : $2*1.45):4 with labels textcolor rgb '#333333' font 'sans-serif,11'
"""
PAYS, FLAT = 0x2F6DA8, 0xAEB6BF


def rows(lineage):
    edges = [None] + lineage["edges"]
    for i, (state, edge) in enumerate(zip(lineage["states"], edges)):
        gain = edge["gain"]["ratio"] if edge else None
        colour = PAYS if not edge or edge["pays"] else FLAT
        label = "" if gain is None else f"{gain:.2g}×" if gain >= 2 else f"{gain:.2f}×"
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


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    lineage = json.loads(source.read_text())
    ratios = [s["ratio"] for s in lineage["states"]]
    baseline = baseline_of(source.with_suffix(".evidence.jsonl"), lineage["states"][-1]["verdict"])
    device = {"nvidia-sm90a/cuda-13.0": "NVIDIA H200"}.get(lineage["platform"], lineage["platform"])
    title = f"{lineage['task']['name']}, {lineage['surface']} on {device}: from naive to the expert, one proven step at a time"
    script = SCRIPT.format(low=min(ratios) / 1.6, high=max(max(ratios), 1) * 3, last=len(ratios) - 1, baseline=baseline, title=title.replace("_", " "),
                           rows="\n".join(rows(lineage)))
    drawn = subprocess.run(["gnuplot", "-d", "-"], input=script, capture_output=True, text=True, check=True)
    out.write_text(drawn.stdout)


if __name__ == "__main__":
    main()
