#!/usr/bin/env python3
"""runner_script.py - a runner for trusted Python: script baselines and the reference text of a definition, with PyTorch.

    python3 runner_script.py run cpu|cuda [--trusted]     speaks src/backend/wire.h on descriptor 3

The line `#wire` below becomes the structs and enums of wire.def, layout.def, klineage/backend.def and kernel/plan.def when klineage is built
(wire_python.c).  A message of another size than its struct is refused, so a runner that was not built with its gate says so
instead of reading nonsense.

A script defines `run`.  It is called as its signature says: with keywords where it has **kwargs or names the inputs, else with the
inputs in order; with the outputs behind them where it takes as many arguments as there are tensors (it writes them and returns
nothing).  It returns a dict by name, a tuple in order, or one tensor.  Inputs are tensors on the device, scalars are Python numbers.

What it returns is copied to the shared pages after a run; outputs of timed calls stay where they are, since nobody compares them.

On a GPU the input sets are drawn there, by the kernel that draws those of C runners: DRAW_PTX is the same text.

Not here: isolation (scripts are part of a task, never of a candidate), guard zones, checks that inputs are unchanged.
SPDX-License-Identifier: Apache-2.0
"""

import array
import ctypes as C
import functools
import inspect
import linecache
import mmap
import os
import platform
import random
import resource
import socket
import sys
import time
import warnings

# ---- wire.h ---------------------------------------------------------------------------------------------------------------------------

#wire
MESSAGES = {LOAD: kl_msg_load, BIND: kl_msg_bind, UPLOAD: kl_msg_upload, DRAW: kl_msg_draw, RUN: kl_msg_run, TIME: kl_msg_time}
ANSWERS = {LOAD: LOADED, BIND: BOUND, UPLOAD: DONE, DRAW: DONE, RUN: DONE, TIME: DONE}


class Fault(Exception):
    """What becomes a reply's fault; anything else that a script raises is KL_FAULT_DEVICE with its own words."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


# ---- futex ----------------------------------------------------------------------------------------------------------------------------

FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine())
libc = C.CDLL(None, use_errno=True)


def futex(structure, field, operation, value):
    address = C.addressof(structure) + getattr(type(structure), field).offset
    if FUTEX:
        libc.syscall(C.c_long(FUTEX), C.c_void_p(address), C.c_int(operation), C.c_uint32(value), None, None, C.c_int(0))


def announce(control, field, value, spin):
    setattr(control, field, value)
    if not spin:
        futex(control, field, 1, 1)


def await_go(control, sequence, spin):
    while control.go != sequence:
        seen = control.go
        if not spin and seen != sequence:
            futex(control, "go", 0, seen)


# ---- draws ----------------------------------------------------------------------------------------------------------------------------

FAKE_DRIVER = os.environ.get("KLINEAGE_LIBCUDA")  # of the tests, as in cuda_api.c
DRAW_THREADS, DRAW_BLOCKS_PER_SM = 256, 64
GOLDEN, WORD = 0x9E3779B97F4A7C15, (1 << 64) - 1


def mix64(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB & WORD
    return x ^ x >> 31


def stream_key(seed, name):
    """As kli_stream_of."""
    h = mix64(seed + GOLDEN & WORD)
    for byte in name.encode():
        h = mix64(h ^ byte) + GOLDEN & WORD
    return mix64(h)


class DrawKernel:
    """draw.cu in torch's own context."""

    def __init__(self, torch):
        self.torch, self.driver = torch, C.CDLL(FAKE_DRIVER or "libcuda.so.1")
        self.blocks = DRAW_BLOCKS_PER_SM * torch.cuda.get_device_properties(0).multi_processor_count
        module, self.function = C.c_void_p(), C.c_void_p()
        self.ask("cuModuleLoadData", C.byref(module), DRAW_PTX)
        self.ask("cuModuleGetFunction", C.byref(self.function), module, b"kl_draw")

    def ask(self, name, *arguments):
        error = getattr(self.driver, name)(*arguments)
        if error:
            raise RuntimeError("%s: error %d of the driver" % (name, error))

    def launch(self, jobs):
        n, longest = len(jobs), max(job.draw.elems for job in jobs)
        parameter = C.c_void_p(C.addressof(jobs))  # one address space for host and device
        grid = max(1, min(-(-self.blocks // n), -(-longest // DRAW_THREADS)))
        stream = C.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        self.ask("cuLaunchKernel", self.function, grid, n, 1, DRAW_THREADS, 1, 1, 0, stream,
                 (C.c_void_p * 1)(C.addressof(parameter)), None)
        self.torch.cuda.synchronize()

    def fill(self, wanted):
        """`wanted`: (draw, seed, name, tensor).  The jobs lie in pinned pages, which are wiped: device memory keeps no key."""
        bytes_of_jobs = len(wanted) * C.sizeof(kli_draw_job)
        pages = self.torch.empty(bytes_of_jobs, dtype=self.torch.uint8, pin_memory=True)
        jobs = (kli_draw_job * len(wanted)).from_address(pages.data_ptr())
        try:
            for job, (draw, seed, name, tensor) in zip(jobs, wanted):
                if draw.elems != tensor.numel():
                    raise Fault(PROTOCOL, "a draw of `%s` has another size" % name)
                job.draw, job.data = draw, tensor.data_ptr()
                job.draw.values, job.draw.order = (stream_key(seed, what + name) for what in ("input/", "order/"))
            self.launch(jobs)
        finally:
            C.memset(pages.data_ptr(), 0, bytes_of_jobs)


def draw_kernel_of(torch):
    """None where the driver does not take it: describe() says so, and the host draws."""
    try:
        return DrawKernel(torch)
    except (OSError, AttributeError, RuntimeError):
        return None


# ---- scripts --------------------------------------------------------------------------------------------------------------------------

NARROW = ("float32", "float16", "bfloat16")


class Scripts:
    """What a script finds beside the builtins: `widened` for a reference that is to run in float64, `generated` for what makes inputs.

    A torch function mode stands around each: tensors asked for on "cuda" come to this runner's device, and in float64
    every conversion to a narrower float is one to float64.  Types of 8 bits and integers stay: rounding to them is meant.
    """

    def __init__(self, torch, device):
        self.torch, self.device = torch, device
        self.narrow = {getattr(torch, name): torch.float64 for name in NARROW}

    def mode(self, wide):
        torch, device, narrow = self.torch, self.device, self.narrow if wide else {}
        wider = {torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16} if wide else ()

        def home(value):
            if isinstance(value, torch.dtype):
                return narrow.get(value, value)
            if isinstance(value, torch.device) or isinstance(value, str) and value.split(":")[0] == "cuda":
                return torch.device(device) if torch.device(value).type == "cuda" else value
            return value

        class Mode(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, function, _types, args=(), kwargs=None):
                if function in wider:
                    return args[0].to(torch.float64)
                if function is torch.Tensor.cuda:
                    return args[0].to(device)
                return function(*map(home, args), **{k: home(v) for k, v in (kwargs or {}).items()})
        return Mode()

    def generator(self, real):
        """Stands for torch.Generator, which makes some for this runner's device.  A class: torch's own modules, which may be loaded
        while it stands there, write `Generator | None`."""
        here = self.device

        class Home(type):
            def __call__(cls, device="cpu"):
                return real(device=here if torch_device_type(device) == "cuda" else device)

            def __instancecheck__(cls, value):
                return isinstance(value, real)

        return Home("Generator", (), {})

    def around(self, function, arguments, keywords, wide=False):
        torch = self.torch
        default, torch_generator = torch.get_default_dtype(), torch.Generator
        torch.Generator = self.generator(torch_generator)
        if wide:
            torch.set_default_dtype(torch.float64)
        try:
            with torch.no_grad(), self.mode(wide):
                return function(*arguments, **keywords)
        finally:
            torch.set_default_dtype(default)
            torch.Generator = torch_generator

    def widened(self, function):
        def wide(value):
            return value.to(self.torch.float64) if getattr(value, "dtype", None) in self.narrow else value

        @functools.wraps(function)
        def run(*arguments, **keywords):
            return self.around(function, map(wide, arguments), {k: wide(v) for k, v in keywords.items()}, wide=True)
        return run

    def generated(self, function):
        def run(kl_seed, **axes):
            seed = int(kl_seed[0])
            self.torch.manual_seed(seed)
            random.seed(seed)
            if "numpy" in sys.modules:
                sys.modules["numpy"].random.seed(seed & 0xFFFFFFFF)
            return self.around(function, (dict(axes, kl_seed=seed), self.torch.device(self.device)), {})
        return run


def torch_device_type(device):
    return str(device).split(":")[0]


# ---- tensors --------------------------------------------------------------------------------------------------------------------------

def torch_dtypes(torch):
    return [getattr(torch, name, None) if name else None for name in DTYPES]


def raw_bytes(torch, tensor):
    return tensor.reshape(-1).view(torch.uint8)


# Of a function of hundreds of launches, which all have to be queued before the first begins; half of what the stream is kept busy for.
LONGEST_PLUG_NS = 20_000_000


class Runner:
    def __init__(self, torch, device):
        self.torch, self.device = torch, device
        self.dtypes = torch_dtypes(torch)
        self.on_gpu = device == "cuda"
        self.draw_kernel = draw_kernel_of(torch) if self.on_gpu else None
        self.plan = self.function = self.layout = self.control = self.keep = None
        self.inputs, self.graphs, self.flush_buffer, self.flush_value = {}, {}, None, 0
        self.call_host_ns = 200000

    # -- load

    def describe(self):
        torch = self.torch
        if not self.on_gpu:
            return "torch %s, %s" % (torch.__version__, platform.machine())
        name = ("fake device " if FAKE_DRIVER else "") + torch.cuda.get_device_name(0)
        where = "" if self.draw_kernel else " (inputs are drawn on the host)"
        return "torch %s (cuda %s), %s%s" % (torch.__version__, torch.version.cuda, name, where)

    def load(self, message, fds):
        if len(fds) != 1 or message.artefact_kind != ARTEFACT_SCRIPT:
            raise Fault(PROTOCOL, "a script runner loads scripts")
        with os.fdopen(fds[0], "rb") as file:
            file.seek(0)
            source = file.read()
        self.forget()
        self.plan = message.plan
        if self.plan.n_tensors > MAX_TENSORS or self.plan.n_launches > MAX_LAUNCHES:
            raise Fault(PROTOCOL, "the plan is malformed")
        self.tensors = [(i, t, t.name.decode()) for i, t in enumerate(self.plan.tensors[:self.plan.n_tensors])]
        self.in_names = [name for _, t, name in self.tensors if t.role != OUTPUT]
        self.out_names = [name for _, t, name in self.tensors if t.role == OUTPUT]
        for _, t, name in self.tensors:
            if t.dtype >= len(self.dtypes) or self.dtypes[t.dtype] is None:
                raise Fault(REFUSED, "this torch does not know the data type of `%s`" % name)
        self.place(message.cpu, max(1, message.threads))
        scripts, name = Scripts(self.torch, self.device), "klineage_script.py"
        space = {"__name__": "klineage_script", "widened": scripts.widened, "generated": scripts.generated}
        linecache.cache[name] = (len(source), None, source.decode(errors="replace").splitlines(True), name)  # whoever asks for its source
        try:
            exec(compile(source, name, "exec"), space)
        except ImportError as error:
            raise Fault(REFUSED, "not installed: %s" % error) from error
        self.function = space.get("run")
        if not callable(self.function):
            raise Fault(REFUSED, "the script defines no function `run`")
        self.style = self.call_style()
        own = space.get("describe")
        return "%s; %s" % (own(), self.describe()) if callable(own) else self.describe()

    def forget(self):
        """What a graph wrote to stays in torch's cache, out of which no other process gets it: at some point it goes back."""
        self.inputs, self.graphs = {}, {}
        if self.on_gpu:
            free, total = self.torch.cuda.mem_get_info()
            if free < total / 2:
                self.torch.cuda.empty_cache()

    def place(self, cpu, threads):
        self.torch.set_num_threads(threads)
        if not hasattr(self, "affinity"):
            self.affinity = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {cpu} if cpu >= 0 else self.affinity)

    def call_style(self):
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            return "positional"
        if any(p.kind == p.VAR_KEYWORD for p in parameters):
            return "keywords"
        required = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        if len(required) == len(self.tensors) and self.out_names:
            return "destination"
        return "keywords" if set(required) == set(self.in_names) else "positional"

    # -- bind, upload, draw

    def bind(self, message, fds):
        if self.plan is None or len(fds) != 4:
            raise Fault(PROTOCOL, "nothing is loaded")
        layout = message.layout
        sizes = (layout.set_bytes * layout.n_sets, layout.slot_bytes * layout.n_slots)
        for (_, t, name) in self.tensors:
            stride = layout.set_bytes if t.role == INPUT else layout.slot_bytes
            if t.role != SCALAR and layout.tensor_offset[_] + t.bytes > stride:
                raise Fault(PROTOCOL, "`%s` is outside its set or slot" % name)
        # Frames that raised may still hold views of the old pages; the process ends soon enough for them.
        self.forget()
        self.layout = layout
        self.in_pages = mmap.mmap(fds[0], sizes[0], prot=mmap.PROT_READ) if sizes[0] else None
        self.out_pages = mmap.mmap(fds[1], sizes[1]) if sizes[1] else None
        self.control = kl_control.from_buffer(mmap.mmap(fds[3], C.sizeof(kl_control)))
        for fd in fds:
            os.close(fd)

    def view(self, pages, offset, t):
        """The bytes of a tensor in shared pages, as a tensor; bytes first, because frombuffer does not know every type."""
        torch = self.torch
        shape = tuple(t.dims[:t.ndim])
        if t.bytes == 0:
            return torch.empty(shape, dtype=self.dtypes[t.dtype])
        raw = torch.frombuffer(pages, dtype=torch.uint8, count=t.bytes, offset=offset)
        return raw.view(self.dtypes[t.dtype]).reshape(shape)

    def input_view(self, i, t, set_index):
        return self.view(self.in_pages, self.layout.set_bytes * set_index + self.layout.tensor_offset[i], t)

    def output_view(self, i, t, slot):
        return self.view(self.out_pages, self.layout.slot_bytes * slot + self.layout.tensor_offset[i], t)

    def blank(self, t):
        return self.torch.empty(tuple(t.dims[:t.ndim]), dtype=self.dtypes[t.dtype], device=self.device)

    def room_for(self, t, name, set_index):
        """Where an input of a set lies, drawn or brought: graphs hold the address."""
        held = self.inputs.setdefault(set_index, {})
        if name not in held:
            held[name] = self.blank(t)
        return held[name]

    def inputs_of(self, sets):
        return [(s, i, t, name) for s in sets for i, t, name in self.tensors if t.role == INPUT]

    def upload(self, message, _fds):
        for s, i, t, name in self.inputs_of(range(message.first, min(message.first + message.n, self.layout.n_sets))):
            self.room_for(t, name, s).copy_(self.input_view(i, t, s))
        self.sync()

    def draw(self, message, _fds):
        q, wanted = message.request, []
        if not self.draw_kernel:
            raise Fault(REFUSED, "no kernel draws here")
        if q.first + q.n > self.layout.n_sets:
            raise Fault(PROTOCOL, "there is no input set %d" % (q.first + q.n - 1))
        for s, i, t, name in self.inputs_of(range(q.first, q.first + q.n)):
            room = self.room_for(t, name, s)
            if q.draws[i].kind == DRAW_NONE:
                room.copy_(self.input_view(i, t, s))
            else:
                wanted.append((q.draws[i], q.seeds[s], name, room))
        if wanted:
            self.draw_kernel.fill(wanted)
        self.sync()
        if q.proof != NO_PROOF:
            self.prove(q)

    def prove(self, q):
        """The shared pages hold both ends of each drawn tensor of this set too; compared on the device, as bytes."""
        for s, i, t, name in self.inputs_of([q.proof]):
            if q.draws[i].kind == DRAW_NONE or not t.bytes:
                continue
            here, there = raw_bytes(self.torch, self.input_view(i, t, s)), raw_bytes(self.torch, self.inputs[s][name])
            end = min(PROOF_ELEMS * t.bytes // q.draws[i].elems, t.bytes)
            for part in (slice(0, end), slice(t.bytes - end, t.bytes)):
                if not self.torch.equal(here[part].to(self.device), there[part]):
                    raise Fault(PROTOCOL, "the device drew other bytes for input set %d" % s)

    def input_tensor(self, i, t, name, set_index):
        """On a CPU the shared pages themselves, which nobody uploads; they are read-only, and a script that writes to them dies."""
        held = self.inputs.setdefault(set_index, {})
        if name not in held:
            if self.on_gpu:
                raise Fault(PROTOCOL, "input set %d was never uploaded" % set_index)
            held[name] = self.input_view(i, t, set_index)
        return held[name]

    def scalar(self, t):
        return t.value if DTYPES[t.dtype].startswith(("float", "bfloat")) else bool(t.value) if DTYPES[t.dtype] == "bool" else int(t.value)

    def sync(self):
        if self.on_gpu:
            self.torch.cuda.synchronize()

    # -- one call

    def arguments(self, set_index, slot):
        """Everything that may take time before a call: mutable inputs restored, destinations made."""
        values = {}
        for i, t, name in self.tensors:
            if t.role == INPUT:
                values[name] = self.input_tensor(i, t, name, set_index)
            elif t.role == SCALAR:
                values[name] = self.scalar(t)
            elif t.role == MUTABLE:
                values[name] = self.output_view(i, t, slot).to(self.device, copy=True)
            elif self.style == "destination":
                values[name] = self.blank(t)
        return values

    def call(self, values):
        if self.style == "keywords":
            return self.function(**{name: values[name] for name in self.in_names})
        names = self.in_names + (self.out_names if self.style == "destination" else [])
        return self.function(*[values[name] for name in names])

    def results(self, values, returned):
        """Outputs by name, whatever form the script gave them."""
        if self.style == "destination" and returned is None:
            return {name: values[name] for name in self.out_names}
        if isinstance(returned, dict):
            missing = [name for name in self.out_names if name not in returned]
            if missing:
                raise Fault(DEVICE, "the script did not return `%s`" % missing[0])
            return returned
        listed = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if len(listed) != len(self.out_names):
            raise Fault(DEVICE, "the script returned %d values, the task has %d outputs" % (len(listed), len(self.out_names)))
        return dict(zip(self.out_names, listed))

    def store(self, values, returned, slot):
        named = self.results(values, returned)
        for i, t, name in self.tensors:
            if t.role not in (OUTPUT, MUTABLE):
                continue
            value = self.torch.as_tensor(named[name] if t.role == OUTPUT else values[name])
            if tuple(value.shape) != tuple(t.dims[:t.ndim]):
                raise Fault(DEVICE, "`%s` has shape %s, not %s" % (name, tuple(value.shape), tuple(t.dims[:t.ndim])))
            self.output_view(i, t, slot).copy_(value.to(self.dtypes[t.dtype]))

    def place_of(self, call):
        return call % self.layout.n_sets, call % self.layout.n_slots

    def run(self, message, _fds):
        values = self.arguments(message.set, message.slot)
        self.sync()
        begin = time.monotonic_ns()
        with self.torch.no_grad():
            returned = self.call(values)
        self.sync()
        self.wall_ns = time.monotonic_ns() - begin
        self.store(values, returned, message.slot)

    # -- timing

    def time(self, message, _fds):
        if message.calls > MAX_SAMPLES:
            raise Fault(PROTOCOL, "%d timed calls" % message.calls)
        with self.torch.no_grad():
            if message.method == BATCH:
                return self.time_batch(message)
            if not self.on_gpu:
                raise Fault(PROTOCOL, "device events need a GPU")
            return self.time_events(message) if message.method == EVENTS else self.time_graph(message)

    def warm_up(self, message):
        for j in range(message.warm):
            begin = time.monotonic_ns()
            self.call(self.arguments(*self.place_of(message.first + message.calls + j)))
            self.call_host_ns = min(LONGEST_PLUG_NS, max(20000, time.monotonic_ns() - begin))
        self.sync()

    def time_batch(self, message):
        control, spin = self.control, bool(message.spin)
        prepared = [self.arguments(*self.place_of(message.first + j)) for j in range(message.calls)]
        self.warm_up(message)
        function, returned = self.call, []
        announce(control, "armed", message.sequence, spin)
        await_go(control, message.sequence, spin)
        for values in prepared:
            returned.append(function(values))
        if self.on_gpu:
            self.torch.cuda.synchronize()
        announce(control, "done", message.sequence, spin)
        return 0

    def flush(self):
        """Write 2 x L2, with a value that alternates, by the very function of the C runner: after a fill of PyTorch's own a matrix
        product takes .8 % longer."""
        torch = self.torch
        if self.flush_buffer is None:
            l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0) or 64 << 20
            self.flush_buffer = torch.empty(2 * l2, dtype=torch.uint8, device="cuda")
            self.driver = C.CDLL("libcuda.so.1")
        self.flush_value ^= 0xFF
        if self.driver.cuMemsetD8Async(C.c_void_p(self.flush_buffer.data_ptr()), C.c_ubyte(self.flush_value),
                                       C.c_size_t(self.flush_buffer.numel()), C.c_void_p(torch.cuda.current_stream().cuda_stream)):
            raise Fault(DEVICE, "flushing the cache")

    def plug(self):
        """Keep the stream busy for twice the time that Python needs to enqueue a call, so that its latency stays out of the interval."""
        self.torch.cuda._sleep(int(2 * self.call_host_ns * 2))  # cycles, at about 2 per ns

    def time_events(self, message):
        torch = self.torch
        self.warm_up(message)
        pairs = []
        begin = time.monotonic_ns()
        for j in range(message.calls):
            values = self.arguments(*self.place_of(message.first + j))
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            self.sync()
            self.plug()
            for _ in range(FLUSHES if message.flush else 0):
                self.flush()
            first.record()
            self.call(values)
            last.record()
            pairs.append((first, last))
        self.sync()
        self.wall_ns = time.monotonic_ns() - begin
        for j, (first, last) in enumerate(pairs):
            self.control.samples_ns[j] = first.elapsed_time(last) * 1e6
        return message.calls

    def capture(self, message):
        """One graph of all calls; what they return are tensors that every replay writes again."""
        torch = self.torch
        prepared = [self.arguments(*self.place_of(message.first + j)) for j in range(message.calls)]
        side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.call(prepared[0])
        torch.cuda.current_stream().wait_stream(side)
        try:
            with torch.cuda.graph(graph):
                returned = [self.call(values) for values in prepared]
        except RuntimeError as error:
            raise Fault(REFUSED, "this cannot be captured in a graph: %s" % first_line(error)) from error
        named = [self.results(values, r) for values, r in zip(prepared, returned)]
        return graph, prepared, self.poisonable(prepared, named)

    def graph_for(self, message):
        key = self.place_of(message.first) + (message.calls,)
        if key not in self.graphs:
            if len(self.graphs) >= 4:
                self.graphs.pop(next(iter(self.graphs)))
            self.graphs[key] = self.capture(message)
        return self.graphs[key]

    def aliases(self, output, values):
        """A script may return one of its arguments: poison must not reach inputs."""
        mine = [v.data_ptr() for v in values.values() if isinstance(v, self.torch.Tensor)]
        return output.data_ptr() in mine and self.style != "destination"

    def poisonable(self, prepared, named):
        """The bytes of all outputs, looked up once and not before every replay."""
        found = [(outputs[name], values) for values, outputs in zip(prepared, named)
                 for _, t, name in self.tensors if t.role == OUTPUT and t.bytes]
        return [raw_bytes(self.torch, output) for output, values in found
                if output.is_contiguous() and not self.aliases(output, values)]

    def time_graph(self, message):
        torch = self.torch
        self.warm_up(message)
        graph, prepared, outputs = self.graph_for(message)
        for output in outputs:
            output.fill_(message.poison)
        for j, values in enumerate(prepared):
            for i, t, name in self.tensors:
                if t.role == MUTABLE:
                    values[name].copy_(self.output_view(i, t, self.place_of(message.first + j)[1]))
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if message.flush:
            self.flush()
        self.plug()
        begin = time.monotonic_ns()
        first.record()
        graph.replay()
        last.record()
        self.sync()
        self.wall_ns = time.monotonic_ns() - begin
        self.control.samples_ns[0] = first.elapsed_time(last) * 1e6 / message.calls
        return 1


# ---- the loop -------------------------------------------------------------------------------------------------------------------------

def first_line(error):
    return str(error).strip().split("\n")[0][:300]


def open_runner(backend):
    try:
        warnings.simplefilter("ignore")
        import torch
    except ImportError as error:
        missing = getattr(error, "name", None) in (None, "torch")
        raise Fault(REFUSED, "torch is not installed" if missing else "torch does not start: %s" % first_line(error)) from error
    if backend == "cuda" and not torch.cuda.is_available():
        raise Fault(REFUSED, "torch sees no GPU")
    if backend == "cuda":
        torch.cuda.init()
        torch.zeros(1, device="cuda")  # the context, before anything is measured
    return Runner(torch, "cuda" if backend == "cuda" else "cpu")


def receive(link):
    longest = max(C.sizeof(message) for message in MESSAGES.values())
    data, ancillary, _flags, _address = link.recvmsg(longest + 1, socket.CMSG_SPACE(16))
    fds = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[:len(payload) - len(payload) % fds.itemsize])
    return data, list(fds)


def parse(data):
    if len(data) < C.sizeof(kl_msg_head):
        return None, None
    head = kl_msg_head.from_buffer_copy(data)
    wanted = MESSAGES.get(head.kind)
    if head.version != WIRE_VERSION or wanted is None or len(data) != C.sizeof(wanted):
        return head.kind, None
    return head.kind, wanted.from_buffer_copy(data)


def act(runner, kind, message, fds, reply):
    if message is None:
        raise Fault(PROTOCOL, "a message of another build of klineage: keep runner_script.py and the gate together")
    runner.wall_ns = 0
    slot = {LOAD: runner.load, BIND: runner.bind, UPLOAD: runner.upload, DRAW: runner.draw, RUN: runner.run, TIME: runner.time}[kind]
    if kind not in (LOAD, BIND) and runner.layout is None:
        raise Fault(PROTOCOL, "nothing is bound")
    answer = slot(message, fds)
    reply.wall_ns = runner.wall_ns
    if kind == LOAD:
        reply.text = answer.encode()[:500]
    if kind == TIME:
        reply.n_samples = answer


def out_of_memory_text():
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    said = "" if limit == resource.RLIM_INFINITY else ": a script may take %.3g GiB here" % (limit / 2**30)
    return ("out of memory" + said).encode()


def guarded(reply, action):
    """Run `action`; whatever it raises becomes the reply's fault."""
    try:
        return action()
    except Fault as fault:
        reply.fault, reply.text = fault.kind, str(fault).encode()[:500]
    except MemoryError:
        reply.fault, reply.text = REFUSED, out_of_memory_text()
    except Exception as error:  # a script may raise anything
        if "llocate memory" in str(error):  # torch on a CPU: a RuntimeError of its own
            reply.fault, reply.text = REFUSED, out_of_memory_text()
            return None
        out_of_memory = type(error).__name__ == "OutOfMemoryError"
        reply.fault = REFUSED if out_of_memory else DEVICE
        reply.text = ("%s: %s" % (type(error).__name__, first_line(error))).encode()[:500]
    return None


def serve(backend):
    link = socket.socket(fileno=WIRE_FD)
    reply = kl_msg_reply(head=kl_msg_head(READY, WIRE_VERSION))
    runner = guarded(reply, lambda: open_runner(backend))
    if runner:
        reply.text = runner.describe().encode()[:500]
    link.send(bytes(reply))
    while runner:
        data, fds = receive(link)
        if not data:
            return 0
        kind, message = parse(data)
        reply = kl_msg_reply(head=kl_msg_head(ANSWERS.get(kind, DONE), WIRE_VERSION))
        guarded(reply, lambda: act(runner, kind, message, fds, reply))
        link.send(bytes(reply))
    return 0


def main(arguments):
    if len(arguments) >= 2 and arguments[0] == "run" and arguments[1] in ("cpu", "opencl", "cuda"):
        return serve(arguments[1])
    print("usage: runner_script.py run cpu|cuda; started by klineage", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
