"""draft_cuda.py - the plain kernel for a GPU: the drafted C, as one block of threads.

The two outermost loops of every nest are shared among the threads, and all wait for each other behind it: each pass of
such a loop writes places of its own.  What lies between nests is done by every thread alike.  Nothing of this is proven
here: `task check` on a host with a GPU does that, as with any kernel.
SPDX-License-Identifier: Apache-2.0
"""
import re

ROWS, COLUMNS = 16, 64
LOOP = re.compile(r"^( *)for \(int64_t (i\d+) = 0; \2 < (.+); \2\+\+\) \{$")
WORDS = (("int64_t", "long long"), ("int32_t", "int"), ("int16_t", "short"), ("int8_t", "signed char"), ("uint8_t", "unsigned char"), ("uint32_t", "unsigned"))
ALONE = ("sqrt", "exp", "log")    # of whole numbers too
IN_DOUBLE = ("fmax", "fmin", "pow", "fmod", "atan2", "copysign", "hypot")    # as C promotes them; C++ finds two forms that fit
MACROS = "".join(f"#define {a} {b}\n" for a, b in WORDS) + "".join(f"#define {f}(x, y) {f}((double)(x), (double)(y))\n" for f in IN_DOUBLE) \
    + "".join(f"#define {f}(x) {f}((double)(x))\n" for f in ALONE)


def shared(line, axis, size):
    indent, name, bound = LOOP.match(line).groups()
    return f"{indent}for (int64_t {name} = threadIdx.{axis}; {name} < {bound}; {name} += {size}) {{"


def body(lines):
    inside = False
    for i, line in enumerate(lines):
        loop = LOOP.match(line)
        if loop and len(loop[1]) == 4:
            nested = i + 1 < len(lines) and LOOP.match(lines[i + 1])
            inside = True
            yield shared(line, "y", ROWS) if nested else shared(line, "x", ROWS * COLUMNS).replace("threadIdx.x", f"threadIdx.y * {COLUMNS} + threadIdx.x")
        elif loop and inside and len(loop[1]) == 8 and LOOP.match(lines[i - 1]) and len(LOOP.match(lines[i - 1])[1]) == 4:
            yield shared(line, "x", COLUMNS)
        else:
            yield line
            if line == "    }" and inside:
                inside = False
                yield "    __syncthreads();"


def drafted(text):
    """naive.cu of a naive.c, or None where its types have no plain form on a GPU."""
    if "_Float16" in text or "__fp16" in text:
        return None
    head, _, rest = text.partition("\nvoid naive(")
    head = re.sub(r"//! launch naive args\(", f"//! launch naive grid(1) block({COLUMNS}, {ROWS}) args(", head)
    head = re.sub(r"#include <(math|stdint|stdlib)\.h>\n", "", head)
    head = head.replace("\ntypedef ", f"\n{MACROS}typedef ", 1).replace("\nstatic ", "\nstatic __device__ ")
    parameters, _, code = rest.partition("\n{\n")
    bounds = f"__launch_bounds__({ROWS * COLUMNS})"    # else the compiler may use more registers than so many threads have
    return f'{head}\nextern "C" __global__ void {bounds} naive({parameters}\n{{\n' + "\n".join(body(code.split("\n")))
