"""corpus - folders and installed packages as task folders, with the funnel of what was left out and why.

usage: python3 -B task_corpus SOURCE... --out DIR [--held-out FILE] [--jobs N] [--most N] [--json]

  parsed -> found -> licensed -> closed -> distinct -> kept -> runs -> imported -> admitted

All up to `kept` is read from syntax; nothing of a package is imported.  From `runs` on a candidate's own text runs, each in
a confined process.  One line of DIR/funnel.jsonl for each candidate says where it ended and why; a run that is killed goes on
where it was, since a line is written when a candidate is done.
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "task_import")]    # before Python's own `trace`
sys.path.append(os.path.dirname(HERE))    # where runner_script.py lies

import front    # noqa: E402
import funnel    # noqa: E402
import back    # noqa: E402
from sources import Missing    # noqa: E402


def arguments(words):
    parser = argparse.ArgumentParser(prog="klineage corpus")
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--out", required=True)
    parser.add_argument("--held-out", default="")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--most", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--static", action="store_true")
    return parser.parse_args(words)


def main(words):
    options = arguments(words)
    say = funnel.Progress(options.quiet)
    os.makedirs(options.out, exist_ok=True)
    log = funnel.Log(options.out)
    try:
        held_out = front.held_out(options.held_out)
        jobs = front.run(options.sources, options.out, held_out, log, say, options.jobs)
        if not options.static:
            back.run(jobs[:options.most] if options.most else jobs, options.out, options.jobs, log, say)
    except Missing as missing:
        print(f"klineage corpus: {missing}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        say.end()
        print(f"klineage corpus: interrupted; {log.count} candidates are done and kept: the same command goes on", file=sys.stderr)
        return 130
    say.end()
    table = funnel.Table(log)
    log.close(table)
    print(table.json() if options.json else table.text(options.out))
    return 0 if table.admitted else 10


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
