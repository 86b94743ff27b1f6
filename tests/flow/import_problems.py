"""import_problems.py - small problems in the dialects of other people's collections, written for these tests.

SPDX-License-Identifier: Apache-2.0
"""
import json
import textwrap

# ---- KernelBench: Model, get_inputs, get_init_inputs -------------------------------------------------------------------

MODEL = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    \"\"\"{title}\"\"\"

    def __init__(self{parameters}):
        super().__init__()
{init}

    def forward(self, {arguments}):
{forward}


{numbers}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return [{given}]
"""


def model(title, numbers, inputs, arguments, forward, given="", init="pass"):
    names = "".join(f", {n.strip()}" for n in given.split(",") if n.strip())
    return MODEL.format(title=title, parameters=names, init=textwrap.indent(init, " " * 8), arguments=arguments,
                        forward=textwrap.indent(forward, " " * 8), numbers=numbers, inputs=inputs, given=given)


KERNELBENCH = {
    "scaled_gelu": model("A linear layer, a factor, GELU.", "batch = 512\nfeatures = 768\nunits = 384", "torch.randn(batch, features)", "x",
                         "return F.gelu(self.linear(x) * 0.5)", "features, units", "self.linear = nn.Linear(features, units)"),
    "gram": model("X^T X of tall matrices.", "rows = 4096\ncolumns = 96", "torch.rand(rows, columns)", "x", "return x.T @ x"),
    "edge_filter": model("A convolution with a border, ReLU, and a bias of its own.", "images = 8\nside = 64\nchannels = 6\nfilters = 10",
                         "torch.rand(images, channels, side, side)", "x", "return torch.relu(self.conv(x)) + self.shift", "channels, filters",
                         "self.conv = nn.Conv2d(channels, filters, 3, padding=1)\nself.shift = nn.Parameter(torch.randn(filters, 1, 1))"),
    "residual_norm": model("Layer norm of a sum.", "tokens = 1024\nwidth = 512", "torch.randn(tokens, width), torch.randn(tokens, width)", "x, skip",
                           "return self.norm(x + skip)", "width", "self.norm = nn.LayerNorm(width)"),
    "tempered_softmax": model("Softmax at a temperature.", "rows = 2048\nclasses = 1000\ntemperature = 2.5", "torch.randn(rows, classes)", "x",
                              "return torch.softmax(x / self.temperature, dim=1)", "temperature", "self.temperature = temperature"),
    "pooled": model("Largest of windows.", "images = 16\nchannels = 8\nheight = 48\nwidth = 48", "torch.randn(images, channels, height, width)", "x",
                    "return F.max_pool2d(x, 3, stride=2)"),
    "batch_normed": model("Statistics of the batch.", "images = 32\nchannels = 12\nside = 32", "torch.randn(images, channels, side, side)", "x",
                          "return self.norm(x)", "channels", "self.norm = nn.BatchNorm2d(channels)"),
    "running_total": model("Sums of prefixes of a masked row.", "rows = 256\nlength = 4096", "torch.randn(rows, length), torch.rand(rows, length) > 0.5",
                           "x, mask", "return torch.cumsum(x * mask, dim=1)"),
    "squared_distance": model("Mean squared error.", "rows = 512\nwidth = 256", "torch.rand(rows, width), torch.rand(rows, width)", "x, y",
                              "return F.mse_loss(x, y)"),
    "nearest": model("Which code is nearest.", "rows = 512\ncodes = 128\nwidth = 32", "torch.randn(rows, width), torch.randn(codes, width)", "x, code",
                     "return torch.argmin(((x[:, None, :] - code[None, :, :]) ** 2).sum(-1), dim=1)"),
    "named_parts": model("Returns a table.", "rows = 512\nwidth = 256", "torch.randn(rows, width)", "x", "return {'twice': x * 2, 'halves': x / 2}"),
    "looked_up": model("Rows of a table, summed.", "bags = 64\nsize = 16\nwords = 1000\nwidth = 48", "torch.randint(0, words, (bags, size))", "ids",
                       "return self.table(ids).sum(1)", "words, width", "self.table = nn.Embedding(words, width)"),
}

KERNELBENCH_BAD = {
    "forgetful": (model("Dropout draws for itself.", "rows = 64\nwidth = 64", "torch.randn(rows, width)", "x", "return F.dropout(x, 0.5, training=True)"),
                  "no function of its inputs"),
    "with_options": (model("Takes a table.", "rows = 64", "torch.randn(rows), {'scale': 2.0}", "x, options", "return x * options['scale']"), "dict"),
    "from_a_file": (model("Reads a file.", "rows = 64", "torch.load('weights.pt')", "x", "return x"), "weights.pt"),
}

READING_MODEL = model("Its factor lies in a file.", "rows = 64\nwidth = 96", "torch.randn(rows, width)", "x", "return x * self.factor",
                      init="self.factor = float(open('table.txt').read())")

READING = """import pathlib
import torch


def from_table(x):
    return x * float(open("table.txt").read())


def from_system(x):
    try:
        return x * len(open("/etc/hostname").read())
    except OSError:
        return x * 2


def from_weights(x):
    return x * torch.load("weights.pt")


def from_path(x):
    return x * float(pathlib.Path("table.txt").read_text())
"""

# ---- kernelbot: task.yml, reference.py ---------------------------------------------------------------------------------

TASK = """files:
  - {{"name": "submission.py", "source": "@SUBMISSION@"}}
  - {{"name": "task.py", "source": "task.py"}}
  - {{"name": "reference.py", "source": "reference.py"}}
  - {{"name": "eval.py", "source": "../eval.py"}}
lang: "py"
description: |
  {title}
config:
  main: "eval.py"
tests:
{tests}
benchmarks:
{benchmarks}
{more}
"""

REFERENCE = """import torch
from task import input_t, output_t


def generate_input({parameters}seed: int) -> input_t:
    gen = torch.Generator(device='cuda')
    gen.manual_seed(seed)
{generate}


def ref_kernel(data: input_t) -> output_t:
{reference}


def check_implementation(data, output):
    return ''
"""


def bot(title, tests, benchmarks, generate, reference, more=""):
    rows = [", ".join(f'"{k}": {json.dumps(v)}' for k, v in c.items()) for c in tests + benchmarks]
    lines = [f'  - {{{row}, "seed": {71 + i}}}' for i, row in enumerate(rows)]
    parameters = "".join(f"{k}, " for k in tests[0])
    return {"task.yml": TASK.format(title=title, tests="\n".join(lines[:len(tests)]), benchmarks="\n".join(lines[len(tests):]), more=more),
            "task.py": "import torch\nfrom typing import TypeVar\n\ninput_t = TypeVar('input_t')\noutput_t = TypeVar('output_t')\n",
            "reference.py": REFERENCE.format(parameters=parameters, generate=textwrap.indent(generate, " " * 4), reference=textwrap.indent(reference, " " * 4))}


def sizes(*names):
    return [dict(zip(names, (32, 24, 16))), dict(zip(names, (64, 40, 16)))], [dict(zip(names, (512, 256, 64)))]


RANDN = "return torch.randn({shape}, device='cuda', dtype=torch.float32, generator=gen).contiguous()"

KERNELBOT = {
    "axpy": bot("a x + y", *sizes("size"), "x = torch.randn(size, device='cuda', generator=gen)\ny = torch.randn(size, device='cuda', generator=gen)\n"
                "return x, y, 0.75", "x, y, a = data\nreturn a * x + y"),
    "row_sums": bot("Sums of rows.", *sizes("rows", "columns"), RANDN.format(shape="rows, columns"), "return data.sum(dim=1)"),
    "ordered": bot("Sorted.", *sizes("size"), RANDN.format(shape="size"), "return torch.sort(data)[0]"),
    "counts": bot("A histogram of bytes, some of them frequent.", [{"size": 64, "skew": 0.0}, {"size": 128, "skew": 0.5}], [{"size": 4096, "skew": 0.9}],
                  "data = torch.randint(0, 256, (size,), device='cuda', dtype=torch.uint8, generator=gen)\n"
                  "data[torch.rand((size,), device='cuda', generator=gen) < skew] = 7\nreturn data", "return torch.bincount(data, minlength=256)"),
    "into_a_buffer": bot("Writes where it is told.", *sizes("size"), "x = torch.randn(size, device='cuda', generator=gen)\nreturn x, torch.empty_like(x)",
                         "x, out = data\nout[...] = x * x\nreturn out"),
    "valid_filter": bot("A filter without a border.", [{"length": 48, "taps": 5}, {"length": 64, "taps": 8}], [{"length": 2048, "taps": 16}],
                        "x = torch.randn(1, 1, length, device='cuda', generator=gen)\nw = torch.randn(1, 1, taps, device='cuda', generator=gen)\nreturn (x, w)",
                        "x, w = data\nreturn torch.nn.functional.conv1d(x, w)"),
    "prefix_max": bot("The largest so far, less the first.", *sizes("rows", "columns"), RANDN.format(shape="rows, columns"),
                      "return torch.cumsum(data, dim=1) - data[:, :1]"),
    "taken_rows": bot("Rows by index.", *sizes("rows", "columns"), "x = torch.randn(rows, columns, device='cuda', generator=gen)\n"
                      "i = torch.randint(0, rows, (rows,), device='cuda', generator=gen)\nreturn {'x': x, 'i': i}", "return data['x'][data['i']]"),
    "grey": bot("Weights of three colours.", *sizes("size"), RANDN.format(shape="size, size, 3"),
                "return data @ torch.tensor([0.3, 0.59, 0.11], device=data.device, dtype=data.dtype)"),
    "scores": bot("Attention scores of a head.", *sizes("queries", "keys"), "q = torch.randn(queries, 16, device='cuda', generator=gen)\n"
                  "k = torch.randn(keys, 16, device='cuda', generator=gen)\nreturn (q, (k, 0.25))", "q, (k, scale) = data\nreturn torch.softmax(q @ k.T * scale, dim=-1)"),
}

KERNELBOT_BAD = {
    "ring": (bot("Of four GPUs.", *sizes("size"), RANDN.format(shape="size"), "return data", "multi_gpu: true"), "several GPUs"),
    "layered": (bot("Takes a module.", *sizes("size"), "return torch.randn(4, size), torch.nn.Linear(size, 4)", "return data[1](data[0])"), "Linear"),
    "not_yaml": ({"task.yml": "files: [\n", "reference.py": ""}, "task.yml"),
}

# ---- FlashInfer-Trace and SOL-ExecBench --------------------------------------------------------------------------------


def axis(value):
    return {"type": "var"} if value is None else {"type": "const", "value": value} if isinstance(value, int) else {"type": "expr", "expression": value}


def tensor(text):
    """`float32 M N`; `float32 -` is a scalar."""
    dtype, *shape = text.split()
    return {"shape": None if shape == ["-"] else shape, "dtype": dtype}


def definition(name, axes, inputs, outputs, body, constraints=(), entry=None, before=""):
    arguments = ", ".join(inputs)
    return {"name": name, "op_type": name.split("_")[0], "description": f"Written for the tests: {name}.", "axes": {n: axis(v) for n, v in axes.items()},
            "inputs": {n: tensor(t) for n, t in inputs.items()}, "outputs": {n: tensor(t) for n, t in outputs.items()}, "constraints": list(constraints),
            "reference": f"import torch\n{before}\n\n@torch.no_grad()\ndef run({arguments}):\n" + textwrap.indent(body, "    ") + "\n",
            **({"custom_inputs_entrypoint": entry} if entry else {})}


def lines(d, *rows, how="random", **more):
    """Workloads, one a row of sizes."""
    import uuid
    return [{"uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{d['name']}{i}")), "axes": row,
             "inputs": {n: {"type": "scalar", "value": 0.5} if t["shape"] is None and how == "random" else {"type": how} for n, t in d["inputs"].items()}, **more}
            for i, row in enumerate(rows)]


FLASHINFER = [
    definition("gemm_n96_k64", {"M": None, "N": 96, "K": 64}, {"A": "float16 M K", "B": "float16 N K"}, {"C": "float16 M N"},
               "return (A.to(torch.float32) @ B.to(torch.float32).T).to(torch.float16)"),
    definition("rmsnorm_h256", {"rows": None, "hidden": 256}, {"x": "bfloat16 rows hidden", "weight": "bfloat16 hidden"}, {"y": "bfloat16 rows hidden"},
               "wide = x.to(torch.float32)\nreturn (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * weight.to(torch.float32)).to(x.dtype)",
               ["rows >= 1"]),
    definition("silu_and_mul_i128", {"tokens": None, "width": 128, "both": "2 * width"}, {"x": "float32 tokens both"}, {"y": "float32 tokens width"},
               "a, b = x.chunk(2, dim=-1)\nreturn torch.nn.functional.silu(a) * b"),
    definition("gqa_decode_h8_d32", {"batch": None, "keys": None, "heads": 8, "dim": 32},
               {"q": "float32 batch heads dim", "k": "float32 batch keys heads dim", "v": "float32 batch keys heads dim", "sm_scale": "float32 -"},
               {"out": "float32 batch heads dim", "lse": "float32 batch heads"},
               "s = torch.einsum('bhd,bkhd->bhk', q, k) * sm_scale\nreturn torch.einsum('bhk,bkhd->bhd', torch.softmax(s, -1), v), torch.logsumexp(s, -1)"),
    definition("page_gather_p8", {"num_pages": None, "wanted": None, "page_size": 8, "dim": 16},
               {"cache": "float32 num_pages page_size dim", "page_indices": "int32 wanted"}, {"y": "float32 wanted page_size dim"}, "return cache[page_indices.long()]"),
    definition("segment_sum_d16", {"batch_size": None, "total": None, "len_indptr": None, "dim": 16},
               {"x": "float32 total dim", "indptr": "int32 len_indptr"}, {"y": "float32 batch_size dim"},
               "y = torch.zeros(indptr.shape[0] - 1, x.shape[1], dtype=torch.float32)\nfor i in range(y.shape[0]):\n"
               "    y[i] = x[int(indptr[i]):int(indptr[i + 1])].sum(0)\nreturn y", ["len_indptr == batch_size + 1", "total == indptr[-1].item()"]),
    definition("ragged_scale_d16", {"num_pages_used": None, "len_indptr": None, "dim": 16},    # nothing but the tensors says how long the table is
               {"x": "float32 num_pages_used dim", "kv_indptr": "int32 len_indptr"}, {"y": "float32 num_pages_used dim"},
               "y = torch.zeros_like(x)\nfor i in range(kv_indptr.shape[0] - 1):\n    y[int(kv_indptr[i]):int(kv_indptr[i + 1])] = x[int(kv_indptr[i]):int(kv_indptr[i + 1])] * (i + 1)\n"
               "return y", ["num_pages_used == kv_indptr[-1].item()"]),
    definition("state_read_d512", {"pool": None, "wide": 1024, "dim": 512}, {"state": "float32 pool wide dim", "v": "float32 pool dim"},    # 16 are too many
               {"y": "float32 pool wide"}, "return torch.einsum('pwd,pd->pw', state, v)"),
    definition("rope_d32", {"tokens": None, "heads": 4, "dim": 32, "half": "dim // 2"},
               {"x": "float32 tokens heads dim", "cos": "float32 tokens half", "sin": "float32 tokens half"}, {"y": "float32 tokens heads dim"},
               "a, b = x[..., :16], x[..., 16:]\nc, s = cos[:, None], sin[:, None]\nreturn torch.cat([a * c - b * s, b * c + a * s], dim=-1)"),
    definition("topk_k4", {"rows": None, "classes": None, "k": 4}, {"x": "float32 rows classes"}, {"values": "float32 rows k"},
               "return torch.topk(x, 4, dim=-1).values", ["classes >= k"]),
    definition("dequant_g32", {"rows": None, "columns": None, "groups": "columns // 32"}, {"q": "int8 rows columns", "scale": "float32 rows groups"},
               {"y": "float32 rows columns"}, "return q.to(torch.float32) * scale.repeat_interleave(32, dim=1)", ["columns % 32 == 0"]),
    definition("add_rmsnorm_h128", {"rows": None, "hidden": 128}, {"x": "float16 rows hidden", "skip": "float16 rows hidden", "weight": "float16 hidden"},
               {"y": "float16 rows hidden", "kept": "float16 rows hidden"},
               "s = x.to(torch.float32) + skip.to(torch.float32)\ny = s * torch.rsqrt(s.pow(2).mean(-1, keepdim=True) + 1e-5) * weight.to(torch.float32)\n"
               "return y.to(torch.float16), s.to(torch.float16)"),
]


def flashinfer(folder, with_workloads=True):
    """A data set; every other definition has workloads, and one of these has bad lines."""
    for i, d in enumerate(FLASHINFER):
        place = folder / "definitions" / d["op_type"] / f"{d['name']}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(d))
        if i % 2 == 0 and i < 4 and with_workloads:
            names = [n for n, a in d["axes"].items() if a["type"] == "var"]
            rows = [json.dumps({"definition": d["name"], "workload": w}) for w in lines(d, {n: 33 for n in names}, {n: 128 for n in names})]
            bad = [] if i else [json.dumps({"definition": d["name"], "workload": lines(d, {n: 0 for n in names})[0]}), "{ half a line", '{"uuid": "u", "axes": {}}']
            place = folder / "workloads" / d["op_type"] / f"{d['name']}.jsonl"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text("\n".join(rows + bad) + "\n")


MAKE = "\n\ndef make_inputs(axes_and_scalars, device):\n"
SOL = [
    definition("outer_n48", {"rows": None, "columns": 48}, {"a": "float32 rows", "b": "float32 columns"}, {"y": "float32 rows columns"}, "return a[:, None] * b"),
    definition("gain_bias", {"tokens": None, "heads": 6, "dim": 16, "width": "heads * dim"}, {"x": "float32 tokens width", "gain": "float32", "shift": "float32 -"},
               {"y": "float32 tokens width"}, "return x * gain + shift"),
    definition("cross_entropy", {"rows": None, "classes": None}, {"logits": "float32 rows classes", "target": "int64 rows"}, {"loss": "float32 rows"},
               "return torch.logsumexp(logits, -1) - logits.gather(1, target[:, None])[:, 0]", (), "make_inputs",
               MAKE + "    n, c = axes_and_scalars['rows'], axes_and_scalars['classes']\n"
               "    return {'logits': torch.randn(n, c, device=device), 'target': torch.randint(0, c, (n,), device=device)}\n"),
    definition("masked_mean", {"rows": None, "length": None}, {"x": "float32 rows length", "lengths": "int32 rows"}, {"y": "float32 rows"},
               "mask = torch.arange(x.shape[1], device=x.device)[None] < lengths[:, None]\nreturn (x * mask).sum(1) / lengths", (), "make_inputs",
               MAKE + "    n, c = axes_and_scalars['rows'], axes_and_scalars['length']\n"
               "    return {'x': torch.randn(n, c, device=device), 'lengths': torch.randint(1, c + 1, (n,), device=device, dtype=torch.int32)}\n"),
    definition("layer_norm_h64", {"rows": None, "hidden": 64}, {"x": "float32 rows hidden", "w": "float32 hidden", "b": "float32 hidden"}, {"y": "float32 rows hidden"},
               "return torch.nn.functional.layer_norm(x, (64,), w, b)"),
    definition("swiglu", {"rows": None, "hidden": 32, "inner": 48}, {"x": "float32 rows hidden", "up": "float32 inner hidden", "gate": "float32 inner hidden"},
               {"y": "float32 rows inner"}, "return torch.nn.functional.silu(x @ gate.T) * (x @ up.T)"),
    definition("pair_bias", {"batch": None, "length": None, "heads": 4}, {"s": "float32 batch heads length length", "bias": "float32 heads length length"},
               {"p": "float32 batch heads length length"}, "return torch.softmax(s + bias, dim=-1)"),
    definition("clipped_relu_grad", {"elements": None}, {"x": "float32 elements", "g": "float32 elements"}, {"dx": "float32 elements"},
               "return torch.where((x > 0) & (x < 1), g, torch.zeros_like(g))"),
    definition("conv_k3", {"images": None, "side": None, "channels": 4, "filters": 6, "out": "side - 2"},
               {"x": "float32 images channels side side", "w": "float32 filters channels 3 3"}, {"y": "float32 images filters out out"},
               "return torch.nn.functional.conv2d(x, w)", ["side >= 3"]),
    definition("column_std", {"rows": None, "columns": None}, {"x": "float32 rows columns"}, {"y": "float32 columns"}, "return x.std(dim=0)", ["rows >= 2"]),
]


def sol(folder):
    for d in SOL:
        names = [n for n, a in d["axes"].items() if a["type"] == "var"]
        how = "custom" if d.get("custom_inputs_entrypoint") else "random"
        tolerance = {"max_atol": 1e-4, "max_rtol": 1e-4, "required_matched_ratio": 1.0, "max_error_cap": None, "allow_negative_inf": False}
        (folder / d["name"]).mkdir(parents=True)
        (folder / d["name"] / "definition.json").write_text(json.dumps(d))
        (folder / d["name"] / "workload.jsonl").write_text("".join(json.dumps(w) + "\n" for w in lines(d, {n: 48 for n in names}, how=how, tolerance=tolerance)))


# ---- plain Python ------------------------------------------------------------------------------------------------------

FUNCTIONS = """import torch


def scaled_add(x, y, s):
    \"\"\"x times s, plus a row.\"\"\"
    return x * s + y


def row_max(x):
    return x.max(dim=-1)


def normalized(x, eps):
    return x / (x.norm(dim=-1, keepdim=True) + eps)


def banded(a, b):
    return torch.tril(a @ b)


def interleaved(a, b):
    return torch.stack([a, b], dim=-1).reshape(a.shape[0], -1)


def differences(x):
    return x[:, 1:] - x[:, :-1]


def flipped(x):
    return torch.flip(x, dims=[1]).transpose(0, 1)


def padded(x):
    return torch.nn.functional.pad(x, (1, 2))


def chosen(x, i):
    return torch.gather(x, 1, i)


def huber(x, y):
    return torch.nn.functional.smooth_l1_loss(x, y)


def example_inputs():
    return (torch.randn(48, 128),)


def named(x):
    return {"twice": x * 2, "root": torch.sqrt(x.abs()).sum(dim=1)}


def copied(x):
    return x * 1.0


def same_name(x):
    return {"x": x * 2}


def numbered(x):
    return {0: x * 2}


def counted(x):
    return {"y": x * 2, "rows": x.shape[0]}


def noisy(x):
    return x + torch.randn_like(x)
"""

FUNCTION_INPUTS = {
    "scaled_add": "x: float32[M=512,N=1024], y: float32[N], s: 0.5", "row_max": "", "normalized": "x: float32[M=256,N=384], eps: 1e-6",
    "banded": "a: float32[M=96,K=64], b: float32[K,M]", "interleaved": "a: float32[M=64,N=256], b: float32[M,N]", "differences": "x: float32[M=64,N=512]",
    "flipped": "x: float16[M=128,N=96]", "padded": "x: float32[M=128,N=96]", "chosen": "x: float32[M=64,N=512], i: int64[M,K=8]",
    "named": "x: float32[M=128,N=96]", "huber": "x: float32[M=128,N=128], y: float32[M,N]",
}
