"""confine.py - what a candidate's code may do while it is tried: read Python and the system's libraries, write one folder.

No network (a namespace of its own, where that can be had, and Landlock's TCP rules), no files but those (Landlock),
bounded memory, processor time and file sizes.  What cannot be had is said once, by `held()`.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import resource
import signal
import sys

MEMORY, FILE_BYTES, CPU_SECONDS = 5 << 30, 64 << 20, 90
CREATE, ADD, RESTRICT = 444, 445, 446    # landlock_*, on every architecture that has them
READ = 1 << 0 | 1 << 2 | 1 << 3    # execute, read file, read folder
NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def with_parent():
    """Who starts this ends it, however that ends."""
    libc.prctl(1, signal.SIGKILL, 0, 0, 0)


def landlock_abi():
    return max(0, libc.syscall(CREATE, None, 0, 1))


def readable():
    prefixes = {sys.prefix, sys.base_prefix, *(p for p in sys.path if os.path.isdir(p))}
    program = os.environ.get("KLINEAGE_PROGRAM", "")
    return [p for p in ("/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/sys", "/dev", "/opt", os.path.dirname(program), *sorted(prefixes)) if p and os.path.exists(p)]


def landlock(writable):
    abi = landlock_abi()
    if not abi:
        return False
    every = (1 << 13) - 1 | (1 << 13 if abi >= 2 else 0) | (1 << 14 if abi >= 3 else 0)

    class Ruleset(ctypes.Structure):
        _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64)]

    class Below(ctypes.Structure):
        _pack_ = 1
        _fields_ = [("access", ctypes.c_uint64), ("parent", ctypes.c_int32)]

    ruleset = Ruleset(every, 3 if abi >= 4 else 0)
    fd = libc.syscall(CREATE, ctypes.byref(ruleset), 16 if abi >= 4 else 8, 0)
    if fd < 0:
        return False
    for place, access in [*((p, READ) for p in readable()), *((p, every) for p in writable), ("/dev", READ | 1 << 1), ("/dev/shm", every)]:
        if not os.path.exists(place):
            continue
        at = os.open(place, os.O_PATH | os.O_CLOEXEC)
        rule = Below(access if os.path.isdir(place) else access & (READ | 1 << 1 | 1 << 14) & ~(1 << 3), at)
        libc.syscall(ADD, fd, 1, ctypes.byref(rule), 0)
        os.close(at)
    libc.prctl(38, 1, 0, 0, 0)    # no new privileges
    done = libc.syscall(RESTRICT, fd, 0) == 0
    os.close(fd)
    return done


def entered(writable, seconds=CPU_SECONDS, memory=MEMORY):
    """In a child, before any of a candidate's code; what could not be had."""
    missing = []
    for which, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, FILE_BYTES), (resource.RLIMIT_CPU, seconds)):
        resource.setrlimit(which, (value, value))
    if libc.unshare(NEWNET) != 0:
        missing.append("a network namespace")
    if not landlock(writable):
        missing.append("Landlock")
    return missing
