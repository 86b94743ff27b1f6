#!/usr/bin/env python3
"""report_flow.py - the page of `klineage report` as a browser shows it: on a phone, on a wide screen, dark, and on paper.

usage: as flow.py.  Nothing is gated: the journals are put together from what this repository keeps of real runs, the lineages in library/ with
their verdicts and the experiments in bench/results, so no test here hangs on a clock.  What asks a browser is skipped without one.

    KLINEAGE_PICTURES=DIR      keeps a picture of every page at every width there, to be looked at

SPDX-License-Identifier: Apache-2.0
"""
import hashlib
import html.parser
import itertools
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import xml.etree.ElementTree

import flow
from loop_place import Page, database

WIDTHS = (390, 820, 1280)
SCHEMES = ("light", "dark")
LINEAGES = ("gemm-c", "fmha-c", "gemm-cuda")


# ---- journals ------------------------------------------------------------------------------------------------------------


def put_run(journal, run, command, model, created):
    journal.execute("INSERT OR IGNORE INTO run VALUES (?, ?, ?, ?)", (run, command, json.dumps({"model": model}), created))


def a_walk(p, name):
    """A shipped lineage, as if it had been walked here: returns the run."""
    source = p.source / f"library/lineages/{name}.json"
    p.run("lineage", "import", source).is_("ok")
    lineage = json.loads(source.read_text())
    with sqlite3.connect(database(p)) as journal:
        put_run(journal, lineage["run"], "walk", lineage["model"], lineage["created"])
        for line in source.with_suffix(".evidence.jsonl").read_text().splitlines():
            row = json.loads(line)
            verdict = row["verdict"]
            journal.execute("INSERT OR IGNORE INTO verdict (key, task, kernel, platform, outcome, json, created) VALUES (?, ?, ?, ?, ?, ?, ?)",
                            (row["key"], verdict["task"]["name"], verdict["kernel"]["hash"], verdict["platform"]["name"], verdict["outcome"],
                             json.dumps(verdict), verdict["created"]))
    return lineage["run"]


def row_of(track, at, action, parent="", best=False, outcome="pass", spent=0):
    return dict(workload=track["workload"], policy=track["policy"], phase="materialize", action=action, locus="", parent=parent, kernel=at["kernel"],
                source="", verdict=at["verdict"], outcome=outcome, ratio=at["ratio"], low=at["low"], high=at["high"], median_ns=at["median_ns"],
                accepted=best, best=best, spent_microusd=spent, why="")


def rows_of(track):
    """Start, the steps that led to the best, the end: what a document of results keeps of a track."""
    start, at = track["start"], {p[2]: round(p[0] * 1e6) for p in track["curve"]}
    rows = [row_of(track, start, "start", best=True)]
    for step in track["path"]:
        rows.append(row_of(track, step, step["action"], rows[-1]["kernel"], True, spent=at.get(step["step"], 0)))
    for outcome, n in track["outcomes"].items():
        never = dict(start, verdict="", ratio=0, low=0, high=0, median_ns=0)
        rows += [row_of(track, never, "", start["kernel"], outcome=outcome, spent=rows[-1]["spent_microusd"])] * (n if outcome != "pass" else 0)
    end = track.get("end") or {**(track["best"] or start), **(track["gain"] or {})}
    if track["gain_timed"]:
        rows.append({**row_of(track, end, "end", outcome="end", spent=track["spent_microusd"]), "why": track["stopped"] or ""})
    return rows


def an_experiment(p, name, keep=lambda track: True):
    """Tracks of an experiment whose results are kept, as a run of their own.  Of what failed on the way a document of results has the number alone."""
    document = json.loads((p.source / f"bench/results/cpu/experiments/{name}.json").read_text())
    tracks, known = list(filter(keep, document["tracks"])), document["runs"][0]
    run = hash_of(known["id"], *(t["track"] for t in tracks))
    p.run("run", "list").is_("ok")
    with sqlite3.connect(database(p)) as journal:
        put_run(journal, run, known["command"], known["model"], known["created"])
        for track in tracks:
            for n, row in enumerate(rows_of(track)):
                journal.execute("INSERT INTO step VALUES (?, ?, ?, ?)", (run, track["track"], n, json.dumps(row)))
            put_charge(journal, run, known["model"], track)
    return run


def put_charge(journal, run, model, track):
    """All calls of a track as one."""
    tokens = {k: track["tokens"][k] for k in ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output", "estimated")}
    row = dict(effect=hash_of(run, track["track"]), attempt=1, run=run, track=track["track"], workload=track["workload"], policy=track["policy"],
               phase="materialize", model=model, priced_as="claude-opus-4-6", price_date="2026-01-31", state="settled",
               reserved_microusd=track["spent_microusd"], settled_microusd=track["spent_microusd"], created="2026-01-31T12:00:00Z", **tokens)
    journal.execute(f"INSERT INTO charge ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


def hash_of(*words):
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def written(p, name, *runs, library=True):
    out = p.folder / f"{name}.html"
    p.run("report", *runs, "--out", out, *(("--library", p.source / "library") if library else ())).is_("ok")
    return out


def walk_page(p):
    return written(p, "walk", *(a_walk(p, name) for name in LINEAGES))


def comparison_page(p):
    return written(p, "comparison", an_experiment(p, "comparison"))


def trial_page(p):
    return written(p, "trial", an_experiment(p, "comparison", lambda t: t["track"] == "softmax/evolve/1"), library=False)


def noisy_page(p):
    return written(p, "noisy", an_experiment(p, "when"), library=False)


PAGES = (walk_page, comparison_page, trial_page, noisy_page)


# ---- without a browser ---------------------------------------------------------------------------------------------------


class Outline(html.parser.HTMLParser):
    """Headings, pictures and tables of a page."""

    def __init__(self):
        super().__init__()
        self.levels, self.pictures, self.tables, self.in_scroll, self.divs, self.heads = [], [], [], 0, [], 0

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag == "svg":
            self.pictures.append(attrs)
        if tag == "div":
            self.divs.append(attrs)
        if tag == "table":
            self.tables.append(attrs if attrs.get("class") == "facts" else next((d for d in reversed(self.divs) if d.get("class") == "scroll"), None))
        if tag == "th":
            assert attrs.get("scope") in ("row", "col"), attrs

    def handle_endtag(self, tag):
        if tag == "div":
            self.divs.pop()


def test_headings_pictures_and_tables(p):
    for make in PAGES:
        text = make(p).read_text()
        page, outline = Page(), Outline()
        page.feed(text)
        outline.feed(text)
        assert "script" not in page.tags and "url(" not in text.replace("url(#", ""), make.__name__
        assert outline.levels[0] == 1 and outline.levels.count(1) == 1, outline.levels
        jumps = [(a, b) for a, b in zip(outline.levels, outline.levels[1:]) if b > a + 1]
        assert not jumps, f"{make.__name__}: headings jump: {jumps}"
        for picture in outline.pictures:
            assert picture.get("role") == "img" and len(picture.get("aria-label", "")) > 30, picture
        for box in outline.tables:
            scrolls = box and box.get("tabindex") == "0" and box.get("aria-label")
            assert scrolls or box == {"class": "facts"}, f"{make.__name__}: a table that cannot be scrolled by keyboard"
        assert len(outline.pictures) == 2 * text.count("<figure>") if shutil.which("gnuplot") else not outline.pictures
        assert [link for link in page.links if link not in page.ids] == []


def test_the_sentence_on_top(p):
    said = {}
    for make in PAGES:
        text = re.search(r"<p class=lead>(.*?)</p>", make(p).read_text(), re.S)
        said[make] = re.sub("<[^>]*>", "", text[1])
    assert "Asked what makes gemm-cuda fast: 17 single steps lead from naive to the expert" in said[walk_page], said
    assert "; nothing is undecided." in said[walk_page], said
    assert "Asked for faster kernels of 3 targets, 36 trials by 6 policies" in said[comparison_page], said
    assert "Asked for a faster softmax" in said[trial_page] and "is faster than its start, " in said[trial_page], said
    assert "model calls cost ~$" in said[trial_page], said
    assert "undecided: " in said[noisy_page] and "whose times did not settle" in said[noisy_page], said


def test_one_value_is_no_picture(p):
    assert "<figure>" in comparison_page(p).read_text()
    text = trial_page(p).read_text()
    assert "whiskers go from the worst" not in text and "Which policy is best overall" not in text


def test_without_gnuplot_the_picture_is_told(p):
    run = a_walk(p, "gemm-c")
    kept = p.folder / "bin"
    kept.mkdir()
    out = p.folder / "plain.html"
    p.run("report", run, "--out", out, env={"PATH": str(kept)}).is_("ok")
    text = out.read_text()
    assert "<svg" not in text and "Speed of 8 states over K0:" in text and "apt-get install gnuplot-nox" in text


def test_figures_as_files(p):
    if not shutil.which("gnuplot"):
        raise flow.Skip("gnuplot is not here, so no figure is drawn: ./run setup")
    p.run("report", an_experiment(p, "comparison"), "--figures", "figures").is_("ok")
    files = sorted((p.folder / "figures").glob("*.svg"))
    assert "policies.svg" in [f.name for f in files] and len(files) > 3, files
    for file in files:
        picture = xml.etree.ElementTree.parse(file).getroot()
        assert picture.tag.endswith("svg") and len(picture.get("aria-label")) > 30, file
        assert "var(" not in file.read_text(), f"{file}: a file has no style sheet that names its colours"


def test_hostile_words_are_words(p):
    evil = "</svg></figure><script>alert(1)</script>\" onload=\"x '&"
    run = an_experiment(p, "comparison", lambda t: t.update(workload=evil + t["workload"], policy=evil[:30] + t["policy"]) or t["trial"] == 1)
    page, parsed = written(p, "hostile", run), Page()
    text = page.read_text()
    parsed.feed(text)
    assert "<script" not in text and "&lt;script&gt;" in text and "script" not in parsed.tags
    assert "<script" not in p.run("report", run, "--markdown").is_("ok").out.replace("\\<script", "")


def test_the_terminal_of_the_readme(p):
    done = subprocess.run([sys.executable, "-B", p.source / "bench/terminal.py", "--check", p.program], env=p.env, capture_output=True, timeout=280)
    assert done.returncode == 0, done.stderr.decode(errors="replace")


# ---- in a browser --------------------------------------------------------------------------------------------------------

# Asks the page itself, once it stands: what is wider than the window, how small the words of figures are, and the least contrast of any text.
PROBE = """<script>addEventListener("load", () => {
  const box = e => e.getBoundingClientRect();
  const wide = [...document.querySelectorAll("body *")].filter(e => !e.closest("svg, .scroll > *") && box(e).right > innerWidth + 1);
  const figures = [...document.querySelectorAll("figure svg")].filter(s => box(s).width);
  const words = figures.map(s => Math.min(...[...s.querySelectorAll("[font-size]")].map(t =>
    t.getAttribute("font-size") * box(s).width / s.viewBox.baseVal.width)));
  const parts = c => c.match(/[0-9.]+/g).map(Number);
  const light = c => parts(c).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0.05);
  const ground = e => { const c = getComputedStyle(e).backgroundColor; return parts(c)[3] === 0 ? ground(e.parentElement) : c; };
  const texts = [...document.querySelectorAll("body *")].filter(e => box(e).width && !e.closest("script, style")
    && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
  const contrast = e => { const style = getComputedStyle(e), x = light(e.closest("svg") ? style.fill : style.color), y = light(ground(e.closest("figure") || e));
    return x > y ? x / y : y / x; };
  document.title = "PROBE" + JSON.stringify({inner: innerWidth, scroll: document.documentElement.scrollWidth,
    wide: wide.slice(0, 5).map(e => e.tagName + "." + e.className), shown: figures.length, least: Math.min(...words), texts: texts.length,
    contrast: Math.min(...texts.map(contrast)), dark: light(ground(document.body)) < 0.2}) + "PROBE";
});</script>"""


def browser():
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if not program or subprocess.run([program, "--version"], capture_output=True, timeout=60).returncode != 0:
        raise flow.Skip("no chromium is here, so no page is looked at: ./run setup browser")
    return program


def chromium(p, *words):
    fixed = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
             "--virtual-time-budget=3000", f"--user-data-dir={p.folder / 'profile'}")
    done = subprocess.run([browser(), *fixed, *map(str, words)], capture_output=True, timeout=120, env={**p.env, "HOME": str(p.folder)})
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    return done.stdout.decode(errors="replace")


def framed(p, page, width, high):
    """A page in a frame of exactly this width, which a browser's own window may not have."""
    inner = p.folder / "inner.html"
    inner.write_text(page.read_text().replace("</head>", PROBE + "</head>"))
    return p.write("outer.html", f"""<!doctype html><body style="margin:0"><iframe id=f src="inner.html" style="border:0;width:{width}px;height:{high}px">
</iframe><script>const f = document.getElementById("f");
const look = () => {{ const t = f.contentDocument && f.contentDocument.title; if (t && t.startsWith("PROBE")) document.title = t; else setTimeout(look, 50); }};
look();</script></body>""")


def shown(p, page, width, scheme, *words, high=2400):
    dark = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    outer = framed(p, page, width, high)
    return chromium(p, dark, "--allow-file-access-from-files", f"--window-size={max(width, 600)},{high}", *words, f"file://{outer}")


def probed(p, page, width, scheme):
    """What the page says of itself."""
    said = shown(p, page, width, scheme, "--dump-dom")
    found = re.search(r"<title>PROBE(.*?)PROBE</title>", said, re.S)
    assert found, f"the page did not answer: {said[-500:]}"
    return json.loads(found[1].replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"))


def looks_right(p, page, width, scheme):
    said = probed(p, page, width, scheme)
    what = f"{page.stem}, {width} pixels, {scheme}: {said}"
    assert said["inner"] == width and said["dark"] == (scheme == "dark") and said["texts"] > 20, what
    assert said["scroll"] <= width and not said["wide"], what
    assert not said["shown"] or said["least"] >= 11, f"words of figures are small: {what}"
    assert said["contrast"] >= 4.5, f"text that is hard to read: {what}"
    if os.environ.get("KLINEAGE_PICTURES"):
        picture = p.folder / f"{page.stem}-{width}-{scheme}.png"
        shown(p, page, width, scheme, f"--screenshot={picture}")
        keep(picture)


def test_pages_on_a_phone_on_a_desk_and_in_the_dark(p):
    browser()
    for make in PAGES:
        page = make(p)
        for width, scheme in zip(WIDTHS, ("dark", "light", "dark")) if not os.environ.get("KLINEAGE_PICTURES") else itertools.product(WIDTHS, SCHEMES):
            looks_right(p, page, width, scheme)
    looks_right(p, page, 390, "light")


def keep(path):
    pictures = os.environ.get("KLINEAGE_PICTURES")
    if pictures:
        pathlib.Path(pictures).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, pictures)


def test_a_page_can_be_printed(p):
    browser()
    for make in (walk_page, trial_page):
        page, paper = make(p), p.folder / f"{make.__name__[:-5]}.pdf"
        chromium(p, "--no-pdf-header-footer", f"--print-to-pdf={paper}", f"file://{page}")
        assert paper.read_bytes().startswith(b"%PDF") and paper.stat().st_size > 10000
        keep(paper)


def tests():
    return {name[5:]: f for name, f in globals().items() if name.startswith("test_")}


def main():
    flow.tests = tests
    return flow.main()


if __name__ == "__main__":
    sys.exit(main())
