"""back.py - the half of the funnel that runs: each candidate in a confined process, then `task import`'s reader, then `task check`.

    worker (J of them, torch loaded once)
      child, confined   trial: how it is made and called; import: shapes, oracle, plain kernel     writes DIR/work/KEY alone
      klineage task check, confined                                                               the admission, nothing timed

A worker's record is written by the one process that holds the log, and the task moved to its place before that.
SPDX-License-Identifier: Apache-2.0
"""
import collections
import contextlib
import json
import multiprocessing
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import alike
import confine
import front
import funnel
import warm
from sources import Missing

SECONDS = int(os.environ.get("KLINEAGE_CORPUS_SECONDS", "75"))    # of one candidate, until it is a problem
CHECK_SECONDS = 120
MOST_ANSWER = 1 << 20
MOST_OPERATORS = 80    # that a line of the log names
OUT, SCRATCH, HELD, LICENCES = "", "", [], {}


@contextlib.contextmanager
def unheard():
    """A PyTorch that does not like its NumPy says so on descriptor 2, in Python and in C++: no message of ours."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def needs_torch():
    try:
        with unheard():
            import torch  # noqa: F401
    except ImportError:
        raise Missing("PyTorch is needed to try what packages compute", "python3 -m pip install torch, or name a Python that has it in KLINEAGE_PYTHON", package=True) from None


def run(jobs, most, held, out, processes, log, say):
    name_tasks(jobs)
    todo = in_turn([j for j in jobs if not is_done(j, held, log)], log.before.values())
    say.note(f"{len(jobs)} candidates to try, {len(jobs) - len(todo)} of them done before")
    most = len(todo) if most is None else most
    log.pending.update(j["package"] for j in todo[most:])
    todo = todo[:most]
    if not todo:
        return
    prepare(out, held, log)
    begin, done, admitted = time.monotonic(), 0, 0
    pool = multiprocessing.get_context("fork").Pool(processes, front.quiet_child)
    try:
        for row in pool.imap_unordered(whole, todo):
            log.row(row)
            done += 1
            admitted += row["stage"] == "admitted" and not row["reason"]
            pace = (time.monotonic() - begin) / done
            say.line(f"{done} of {len(todo)} tried, {admitted} admitted, {pace:.1f} s each, {pace * (len(todo) - done) / 60:.0f} min to go: {row['id']}")
        pool.close()
    except BaseException:
        pool.terminate()
        raise
    finally:
        pool.join()
        cleared(os.path.join(out, "work"))
        cleared(SCRATCH)


def is_done(job, held, log):
    """By an earlier run, which may have had another list of what is held out."""
    if not log.is_done(job):
        return False
    row = log.before[funnel.key_of(job)]
    operators = row.get("operators", [])
    named = front.is_held(held, *operators, row.get("family", ""))
    if named:
        row = {k: v for k, v in row.items() if k not in ("task", "hash", "cluster")} | held_row(named)
        log.forget(job["task"])
    elif row["reason"] == "held out" or held and len(operators) == MOST_OPERATORS:
        return False
    log.row(row)
    return True


def held_row(named):
    return {"stage": "kept", "reason": "held out", "detail": f"it runs {named}"}


def cleared(folder):
    """Children that are being killed may still write into it."""
    for _ in range(50):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            return
        time.sleep(0.1)


def in_turn(jobs, before):
    """A kind of a package after the other, the shortest of each first: a run that is stopped has seen something of all.
    Those of which more were admitted in the time that they took have their turn more often."""
    queues, share = collections.defaultdict(list), collections.defaultdict(lambda: [1, 5])
    for row in before:
        if row.get("key"):
            mine = share[row["package"], row["kind"]]
            mine[0] += row["stage"] == "admitted" and not row["reason"]
            mine[1] += row.get("seconds", 0)
    for job in sorted(jobs, key=lambda j: len(j["text"])):
        queues[job["package"], job["kind"]].append(job)
    ranked = [(i * share[kind][1] / share[kind][0], n, job) for n, (kind, mine) in enumerate(queues.items()) for i, job in enumerate(mine)]
    return [job for _, _, job in sorted(ranked, key=lambda r: r[:2])]


def prepare(out, held, log):
    global OUT, SCRATCH, LICENCES, HELD
    SCRATCH = tempfile.mkdtemp(prefix="klineage-corpus-")    # of the gate, whose compilers are other users
    os.chmod(SCRATCH, 0o711)
    OUT, LICENCES, HELD = os.path.abspath(out), log.licences, held
    shutil.rmtree(os.path.join(out, "work"), ignore_errors=True)
    for name in ("work", *funnel.HOMES):
        os.makedirs(os.path.join(out, name), exist_ok=True)
    with unheard():
        import torch    # once, for all children
        import torch.utils._python_dispatch  # noqa: F401
        torch.set_num_threads(1)
        import runner_script  # noqa: F401
        import trial  # noqa: F401
        import kernelbench  # noqa: F401


def name_tasks(jobs):
    for job in jobs:
        job["task"] = front.task_name(job)


# ---- one candidate -------------------------------------------------------------------------------------------------------

def whole(job):
    begin = time.monotonic()
    folder = os.path.join(OUT, "work", job["key"])
    os.makedirs(folder, exist_ok=True)
    row = front.row_of(job, key=job["key"])
    try:
        row |= in_child(job, folder)
        if row["stage"] == "imported" and not row["reason"] and not os.path.isfile(os.path.join(folder, "task", "definition.json")):
            row |= {"stage": "runs", "reason": "its code answers for itself", "detail": "there is no task"}
        elif row["stage"] == "imported" and not row["reason"]:
            row |= checked(job, folder, row)
    except Exception as error:    # of this machine or of this program: it is tried again by the next run
        row |= {"stage": "runs", "reason": "it could not be tried", "detail": f"{type(error).__name__}: {error}"[:300]}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {**row, "seconds": round(time.monotonic() - begin, 1)}


def in_child(job, folder):
    """What the confined child says of it."""
    read_end, write_end = os.pipe()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            confine.with_parent()
            os.close(read_end)
            null = os.open(os.devnull, os.O_RDWR)
            write_end = alone(write_end, null)
            text = json.dumps(tried(job, folder) if os.getppid() == parent else {}).encode()
            os.write(write_end, text[:0] if len(text) > MOST_ANSWER else text)
        finally:
            os._exit(0)
    os.close(write_end)
    text, late = answer_of(read_end, child)
    if text:
        return answered(text)
    return {"stage": "runs", "reason": "not done in time" if late else "its code ended the process", "detail": f"{SECONDS} s" if late else ""}


def alone(write_end, null):
    """No descriptor of the worker's is left to what is tried, but the one for its answer."""
    answer = os.dup(write_end)
    os.dup2(answer, 3)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(4, 1 << 20)
    return 3


ANSWER = {"stage": str, "reason": (str, type(None)), "detail": str, "given": dict, "made": dict, "operators": list, "family": str, "shapes": int, "hidden": int,
          "naive": bool, "oracle": str, "notes": list}


def answered(text):
    """A candidate's code shares its process with what answers, so an answer is only what it may be."""
    try:
        row = json.loads(text)
        fits = row["stage"] in ("runs", "kept", "imported") and all(isinstance(v, ANSWER[k]) for k, v in row.items()) and (row["reason"] or row["stage"] == "imported")
        words = [*row.get("operators", ()), *row.get("notes", ())]
    except (ValueError, KeyError, TypeError, AttributeError):
        fits, words = False, []
    if fits and all(isinstance(w, str) for w in words):
        return row
    return {"stage": "runs", "reason": "its code answers for itself", "detail": text[:200].decode(errors="replace")}


def answer_of(read_end, child):
    text, end = b"", time.monotonic() + SECONDS
    while True:
        ready, _, _ = select.select([read_end], [], [], max(0, end - time.monotonic()))
        part = os.read(read_end, 65536) if ready else b""
        text += part
        if not part:
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read_end)
    return text, time.monotonic() >= end


def tried(job, folder):
    """In the child."""
    import trial
    os.environ.update(HOME=folder, TMPDIR=folder, XDG_CACHE_HOME=folder)
    os.chdir(folder)
    import tempfile
    tempfile.tempdir = folder
    confine.entered([folder])
    row = trial.taken(job, folder)
    if row["reason"]:
        return row
    operators, place = row.pop("operators"), row.pop("problem")
    row |= {"operators": operators[:MOST_OPERATORS], "family": alike.family(operators)}
    held = front.is_held(HELD, *set(operators), row["family"])
    if held:
        return {**row, **held_row(held)}
    answer = trial.imported(place, job, operators, os.path.join(folder, "task"))
    if answer["error"]:
        return {**row, "stage": "imported", "reason": reason_of(answer["error"]), "detail": answer["error"][:300]}
    return {**row, "stage": "imported", "reason": None, "shapes": answer["shapes"], "hidden": answer["hidden"], "naive": answer["naive"],
            "oracle": answer["oracle"], "notes": answer["notes"]}


def reason_of(text):
    """Of an import that was refused: a few words that many share."""
    for pattern, words in ((r"random", "draws random numbers"), (r"no shape|does not run|no small shape", "runs at no other shape"), (r"no such data type", "a data type that tasks do not have"),
                           (r"tensors; a task", "too many tensors"), (r"memory", "takes too much memory"), (r"not finite", "its values are not finite")):
        if re.search(pattern, text):
            return words
    return "not read as a problem"


# ---- admission -----------------------------------------------------------------------------------------------------------

def program():
    return os.environ.get("KLINEAGE_PROGRAM") or os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "klineage")


def confined_check():
    confine.with_parent()
    confine.entered([os.path.join(OUT, "work"), SCRATCH], seconds=CHECK_SECONDS, memory=confine.MEMORY * 4)


def checked(job, folder, row):
    task = os.path.join(folder, "task")
    if LICENCES.get(job["package"]):
        with open(os.path.join(task, "LICENSE"), "w") as file:
            file.write(LICENCES[job["package"]])
    python, server = warm.started(folder, confined_check)
    env = {**os.environ, "KLINEAGE_PYTHON": python, "KLINEAGE_CACHE": os.path.join(SCRATCH, "cache"), "XDG_STATE_HOME": SCRATCH, "TMPDIR": SCRATCH}
    try:
        done = subprocess.run([program(), "task", "check", task, "--json"], capture_output=True, text=True, timeout=CHECK_SECONDS, env=env,
                              preexec_fn=confined_check, start_new_session=True)
    except subprocess.TimeoutExpired:
        return {"stage": "checked", "reason": "its check is not done in time", "detail": f"{CHECK_SECONDS} s"}
    finally:
        warm.stopped(server)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return {"stage": "checked", "reason": "its check fails", "detail": done.stderr.strip()[-300:]}
    return settled(job, task, row, answer)


def settled(job, task, row, answer):
    """In place, as admitted or as half admitted."""
    bad = [r for r in answer.get("rows", ()) if r["passed"] != r["expected_pass"]]
    plain = [r for r in bad if r["name"] == "naive.c"]
    if [r for r in bad if r not in plain]:
        worst = next(r for r in bad if r not in plain)
        kind = "a wrong answer passes its check" if worst["passed"] else "the oracle fails its own check"
        return {"stage": "checked", "reason": kind, "detail": f"{worst['name']}: {worst['why']}"[:300]}
    if plain and plain[0]["why"].startswith("the task's"):
        return {"stage": "checked", "reason": "its inputs cannot be made at every shape", "detail": plain[0]["why"][:300]}
    home = "tasks" if answer["admitted"] else "half"
    place = os.path.join(OUT, home, job["task"])
    for other in funnel.HOMES:
        shutil.rmtree(os.path.join(OUT, other, job["task"]), ignore_errors=True)
    if plain:
        os.remove(os.path.join(task, "naive.c"))
    os.rename(task, place)
    done = {"task": f"{home}/{job['task']}", "hash": answer["hash"]}
    if answer["admitted"]:
        return {**done, "stage": "admitted", "reason": None}
    if plain:
        return {**done, "stage": "admitted", "reason": "its plain kernel is wrong", "detail": plain[0]["why"][:300]}
    note = next((n for n in row["notes"] if n.startswith("no naive kernel")), "no naive kernel was drafted")
    return {**done, "stage": "admitted", "reason": "no plain kernel could be drafted", "detail": note.partition(": ")[2][:300]}
