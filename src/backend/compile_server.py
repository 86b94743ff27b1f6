"""compile_server.py - a compiler that is a Python script, asked once, or by a child for every job.

usage: python3 -I -B compile_server.py once SITE SCRIPT MODULE...     request on stdin, answer on stdout
       python3 -I -B compile_server.py serve SITE SCRIPT MODULE...    jobs come over the socket on descriptor 3
       python3 -I -B compile_server.py load SITE SCRIPT MODULE...     nothing: does the compiler load here?

It runs confined from its first byte on, and alone in a process namespace when it serves: as process
1 of it, it can be neither ended nor stopped by what it starts, and everything ends with it.  The
server itself never reads a request: a job is three descriptors (request, answer, log), which a child
takes as its own.  Once the child has ended, all that it may have left running is killed and waited
for, and only then the exit status goes back; so no process of one job meets one of another.
SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import struct
import sys
import traceback

JOBS = 3          # descriptor of the socket
STANDARD = 3      # descriptors of a job


def load(site, script, modules):
    os.environ["OPENBLAS_NUM_THREADS"] = "1"    # of numpy: a process that forks has one thread
    sys.path.insert(0, site)
    for name in modules:
        importlib.import_module(name)
    spec = importlib.util.spec_from_file_location("script", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answer_once(script):
    with open(0) as request, os.fdopen(os.dup(1), "w") as answer:
        os.dup2(2, 1)    # what a compiler prints is its log
        answer.write(json.dumps(script.answer(json.load(request))))


def status_of(script):
    """Exit status of a script that ends as Python would end it."""
    try:
        answer_once(script)
    except SystemExit as end:
        if isinstance(end.code, int):
            return end.code
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def be_child(script):
    status = 1
    try:    # a log that is full cannot be written to
        status = status_of(script)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)    # nothing is tidied up: that takes longer than it is worth


def take(descriptors):
    for to, descriptor in enumerate(descriptors):
        os.dup2(descriptor, to)
    os.closerange(STANDARD, 1 << 10)    # the socket of the jobs among them


def wait_for(child, jobs):
    """Until it ends, or the gate does."""
    poll, ends = select.poll(), os.pidfd_open(child)
    poll.register(ends, select.POLLIN)
    poll.register(jobs, select.POLLHUP)
    if any(events & select.POLLHUP for _, events in poll.poll()):
        os._exit(0)
    os.close(ends)


def end_all():
    """Status of every child that ended by itself; nothing of this namespace is left but us."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            child, status = os.wait()
            ended[child] = status
    return ended


def serve(script):
    jobs, warm_up = socket.socket(fileno=JOBS), getattr(script, "warm_up", None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        if warm_up and not select.select([jobs], [], [], 0)[0]:
            warm_up, _ = None, warm_up()
        message, descriptors, _, _ = socket.recv_fds(jobs, 1, STANDARD)
        if not message:
            return
        gc.freeze()    # or a child's first collection would copy every page
        child = os.fork()
        if child == 0:
            take(descriptors)
            be_child(script)
        for descriptor in descriptors:
            os.close(descriptor)
        wait_for(child, jobs)
        jobs.send(struct.pack("i", end_all()[child]))


if __name__ == "__main__":
    loaded = load(sys.argv[2], sys.argv[3], sys.argv[4:])
    if sys.argv[1] == "serve":
        serve(loaded)
    elif sys.argv[1] == "once":
        be_child(loaded)
