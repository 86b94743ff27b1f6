"""warm.py - a Python that has torch loaded already, for the runner of `task check`.

Loading torch is most of what a check costs.  `python` is a small program that passes its arguments and descriptor 3, the
gate's wire, to a server which forks from a process that has torch; it ends when that child does, and the child is killed when
it is.  The child runs the same runner_script.py, confined as the server is.
SPDX-License-Identifier: Apache-2.0
"""
import array
import contextlib
import json
import os
import select
import signal
import socket
import sys

PROGRAM = '''#!{python} -ISB
import array, json, os, socket, sys
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect({address!r})
link.sendmsg([json.dumps(sys.argv[1:]).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [3]))])
os.close(3)
said = link.recv(64)
os._exit(int(said or b"1"))
'''


def started(folder, confined):
    """(path of the program, process of the server); the caller kills the process."""
    program, address = os.path.join(folder, "python"), os.path.join(folder, "s")
    with open(program, "w") as file:
        file.write(PROGRAM.format(python=sys.executable, address=address))
    os.chmod(program, 0o700)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    here = os.open(".", os.O_PATH | os.O_DIRECTORY)
    os.chdir(folder)    # a socket's path is short
    listener.bind("s")
    os.fchdir(here)
    os.close(here)
    listener.listen(8)
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            unheard()
            confined()
            serve(listener)
        finally:
            os._exit(1)
    listener.close()
    return program, child


def unheard():
    """What a candidate's code prints is nobody's: on standard output the caller gives its one answer."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def stopped(child):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)


def serve(listener):
    links = {}    # by descriptor: (socket, process)
    while True:
        ready, _, _ = select.select([listener, *links], [], [], 0.05)
        for fd in ready:
            if fd is listener:
                link, child = accepted(listener)
                links[link.fileno()] = link, child
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(links[fd][1], signal.SIGKILL)
        for fd, (link, child) in list(links.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                with contextlib.suppress(OSError):
                    link.send(str(max(0, os.waitstatus_to_exitcode(status)) if os.WIFEXITED(status) else 1).encode())
                link.close()
                del links[fd]


def accepted(listener):
    link, _ = listener.accept()
    data, ancillary, _, _ = link.recvmsg(65536, socket.CMSG_SPACE(4))
    wire = array.array("i", ancillary[0][2])[0]
    child = os.fork()
    if child == 0:
        code = 1
        try:
            listener.close()
            os.dup2(wire, 3)
            code = as_runner(json.loads(data))
        finally:
            os._exit(code)
    os.close(wire)
    return link, child


def as_runner(words):
    import runner_script
    at = next(i for i, w in enumerate(words) if w.endswith("runner_script.py"))
    sys.argv = words[at:]
    os.closerange(4, 64)
    return runner_script.main(words[at + 1:])
