"""corpus - folders and installed packages as task folders, with the funnel of what was left out and why.

usage: python3 -B task_corpus SOURCE... --out DIR [--held-out FILE] [--jobs N] [--most N] [--quiet] [--as-json]

  parsed -> found -> licensed -> closed -> distinct -> kept -> runs -> imported -> admitted

All up to `kept` is read from syntax; nothing of a package is imported.  From `runs` on a candidate's own text runs, each in
a confined process.  One line of DIR/funnel.jsonl for each candidate says where it ended and why; a run that is killed goes on
where it was, since a line is written when a candidate is done.
SPDX-License-Identifier: Apache-2.0
"""
import argparse
import collections
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "task_import")]    # before Python's own `trace`
sys.path.append(os.path.dirname(HERE))    # where runner_script.py lies

import confine    # noqa: E402
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
    parser.add_argument("--most", type=int)
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--as-json", action="store_true")
    return parser.parse_args(words)


def listed(words):
    """@FILE is what it lists."""
    for word in words:
        if not word.startswith("@"):
            yield word
            continue
        try:
            with open(word[1:]) as file:
                yield from filter(None, (line.split("#")[0].strip() for line in file))
        except OSError as error:
            raise Missing(f"{word[1:]}: {error.strerror}") from None


Asked = collections.namedtuple("Asked", "words missing held_out")


def asked_of(options, say):
    """All that a run needs, before it writes anything."""
    held_out = front.held_out(options.held_out)
    words = list(dict.fromkeys(listed(options.sources)))
    back.needs_torch()
    return Asked(*front.there(words, say), held_out)


def filled(options, asked, say, log):
    log.rows(asked.missing)
    jobs = front.run(asked.words, options.out, asked.held_out, log, say, max(1, options.jobs))
    back.run(jobs, options.most, asked.held_out, options.out, max(1, options.jobs), log, say)
    table = funnel.Table(log)
    log.close(table)
    return table


def main(words):
    """The answer, one line of JSON: {text, result, exit_code}, or {error, hint, missing}."""
    options = arguments(words)
    confine.with_parent()
    say = funnel.Progress(options.quiet, options.as_json)
    try:
        asked = asked_of(options, say)
        os.makedirs(options.out, exist_ok=True)
        with funnel.locked(options.out):
            table = filled(options, asked, say, funnel.Log(options.out))
    except Missing as missing:
        print(json.dumps({"error": str(missing), "hint": missing.hint, "missing": missing.package}))
        return 2
    except OSError as error:
        print(json.dumps({"error": f"{error.filename or options.out}: {error.strerror}"}))
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        say.end()
    print(json.dumps({"text": table.text(options.out), "result": table.result(), "exit_code": 0 if table.admitted else 10}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
