"""draft_check.py - is a draft right?  Compiled and compared with the reference, in a process of its own.
SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import time

from problem import FLOATS, TOLERANCE, close
from shapes import evaluated
from trace import NoDraft

MOST_CHECKING = 20    # seconds, after which the other shapes are left to the gate


def compiled(text, folder):
    path = os.path.join(folder, "naive.c")
    with open(path, "w") as file:
        file.write(text)
    compiler = shutil.which(os.environ.get("KLINEAGE_CC") or "cc") or shutil.which("gcc")
    if not compiler:
        return None
    done = subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-w", "-o", path + ".so", path, "-lm"], capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise NoDraft("the draft does not compile: " + next((x for x in done.stderr.splitlines() if "error" in x), "?")[:160])
    return ctypes.CDLL(path + ".so").naive


def called(torch, function, args, p, inputs, values, sizes):
    """The draft on these inputs; outputs by name."""
    given, kept, out = [], [], {}
    types = {"int32": ctypes.c_int32, "float32": ctypes.c_float, "float64": ctypes.c_double, "int64": ctypes.c_int64, "bool": ctypes.c_uint8}
    for a in args:
        if a.startswith("i64("):
            given.append(ctypes.c_int64(values[a[4:-1]]))
        elif a.startswith("kl_"):
            kept.append(torch.empty(sizes[a], dtype=torch.int64 if a == "kl_whole" else torch.float64))
            given.append(ctypes.c_void_p(kept[-1].data_ptr()))
        elif a in p.outputs:
            t = p.outputs[a]
            shape = [values[d] if isinstance(d, str) else d for d in t["shape"]]
            out[a] = torch.zeros(shape, dtype=getattr(torch, t["dtype"]))
            given.append(ctypes.c_void_p(out[a].data_ptr()))
        elif p.inputs[a]["shape"] is None:
            given.append(types[p.inputs[a]["dtype"]](inputs[a]))
        else:
            kept.append(inputs[a].contiguous())
            given.append(ctypes.c_void_p(kept[-1].data_ptr()))
    function(*given)
    return out


def checked(p, make, text, args, values_of):
    """'' if the draft answers as the reference, in a process of its own: it may write anywhere."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = compared(p, make, text, args, values_of)
        except NoDraft as reason:
            said = f"!{reason}"
        except BaseException as error:    # else this child would go on as if it were its parent
            said = f"!what was drafted cannot be tried: {type(error).__name__}"
        os.write(write_end, f"={said}".encode()[:4000])
        os._exit(0)
    os.close(write_end)
    said = os.read(read_end, 4000).decode()
    os.close(read_end)
    os.waitpid(child, 0)
    if not said.startswith("=") or said.startswith("=!"):
        raise NoDraft(said[2:] or "what was drafted crashes")
    return said[1:]


def compared(p, make, text, args, values_of):
    torch = p.script.torch
    with tempfile.TemporaryDirectory() as folder:
        function = compiled(text, folder)
        if function is None:
            return "no C compiler here: it was not tried"
        spent = 0
        for point in p.cases:
            inputs, values = make(point), values_of(point)
            if spent > MOST_CHECKING:
                break
            begin = time.monotonic()
            sizes = {line.split()[2].rstrip(":"): evaluated(re.search(r"\[(.*)\]", line)[1].replace("/", "//"), values)
                     for line in text.splitlines() if line.startswith("//! buffer")}
            if any(s is None or s > 1 << 27 for s in sizes.values()):
                continue
            got = called(torch, function, args, p, inputs, values, sizes)
            want = p.script.run(inputs, wide=p.section.get("oracle") == "float64")
            for (name, t), w in zip(p.outputs.items(), want):
                tolerance = TOLERANCE[t["dtype"]] if t["dtype"] in FLOATS else 1e-9
                if not close(torch, got[name], w.to(got[name].dtype), tolerance):
                    raise NoDraft(f"what was drafted answers otherwise in `{name}`")
            spent += time.monotonic() - begin
    return ""
