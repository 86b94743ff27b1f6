"""recipe.py - what a module or function is made with and given: guesses by name, from the most likely on.

A size is never a number but a name at the top of the problem's file (`dim`, `length`), so that the shapes of a task can
change.  A guess is a text over those names; trial.py runs the guesses until one is right.
SPDX-License-Identifier: Apache-2.0
"""
import inspect
import itertools
import re

SIZES = {    # name: (where it is tried, as it stands in the problem)
    "batch": (2, 4), "length": (12, 64), "dim": (16, 64), "heads": (4, 4), "head_dim": (4, 16), "height": (16, 32), "width": (16, 32), "depth": (8, 8),
    "hidden": (24, 96), "classes": (8, 8), "rank": (4, 4)}
MOST_MADE, MOST_GIVEN = 10, 140
TENSOR = re.compile(r"Tensor|LongTensor|FloatTensor")
NO_TENSOR = {"int", "float", "bool", "str", "Callable", "dict", "Dict", "Path", "Sequence", "List", "list", "type"}

NUMBERS = (    # of a parameter's name: texts to try
    (r"^(num_|n_)?(attention_|attn_|kv_|key_value_|q_)?(num_)?heads?$|^n_?heads?$|^num_(attention|key_value)_heads$|^nhead$|^groups_?num$|^head_num$", ["heads"]),
    (r"^(dim_head|head_dim|d_head|head_size|headdim|dim_heads|head_width|d_k|d_v|dim_key)$", ["head_dim"]),
    (r"kernel|^ks?$|window_?size|filter_size|patch_size", ["3", "2", "4"]),
    (r"^(stride|strides|dilation|groups|n_?groups|repeat|repeats|reduction|scale_factor|upscale_factor|downscale_factor|scale)$", ["1", "2"]),
    (r"^(padding|pad)$", ["1", "0"]),
    (r"num_groups|group_norm", ["4"]),
    (r"vocab|num_embeddings|num_classes|n_classes|num_labels|num_tokens|codebook_size|num_experts|n_experts|classes|^num_emb", ["classes"]),
    (r"max_(position|len|seq)|seq_?len|^n_?ctx$|context_(len|size)|num_(tokens|patches|frames)|sequence_length|max_length|length|^seq$|^n_tokens$", ["length"]),
    (r"img_size|image_size|input_resolution|resolution|feat_size|spatial_size|output_size|^size$|^height$|^width$|^h$|^w$|input_size_hw", ["height", "(height, width)", "dim"]),
    (r"eps(ilon)?$|^eps", ["1e-5"]),
    (r"drop|^p$|prob$|_p$", ["0.0"]),
    (r"^(depth|num_layers|n_layers|layers|num_blocks|n_blocks|num_convs|n_layer|levels|num_levels|stages|num_res_blocks)$", ["2"]),
    (r"rank|lora|bottleneck|reduced|squeeze|code_dim|latent", ["rank"]),
    (r"mlp_dim|hidden_(dim|features|channels)|ff_dim|ffn|inner_dim|intermediate|dim_feedforward|d_ff|mid_|expan", ["hidden", "dim", "2"]),
    (r"ratio|mult|factor|expansion", ["2", "0.5"]),
    (r"dims?$|dim_|channel|chan|feature|feat|planes|width|hidden|units|embed|size|d_model|chs?$|^n_?f$|^c$|^c\d$|^ch|^in$|^out$|_in$|_out$|^d$|^n$|^nc$|shape|^inp$|^oup$|filters|state",
     ["dim", "(dim,)"]),
    (r"alpha|beta|gamma|weight|lambda|temperature|scale|momentum|margin|sigma|theta|base|init_value|tau|slope|threshold|rate|decay|power|coef|smooth|lr|delta|std|min_val|max_val",
     ["0.5", "1.0", "1"]),
    (r"^(bias|qkv_bias|use_|with_|has_|is_|causal|affine|inplace|training|return_|norm$|add_|residual|bidirectional|learn|keep)", ["False", "True"]),
    (r"^(act|activation|act_layer|act_fn|nonlinearity|act_func|non_linearity|hidden_act|activation_fn)", ["torch.nn.GELU", "'gelu'", "'relu'", "torch.nn.GELU()", "torch.nn.functional.gelu"]),
    (r"^(norm|norm_layer|norm_type|normalization)", ["torch.nn.LayerNorm", "torch.nn.BatchNorm2d", "'layer_norm'"]),
    (r"^(axis|axes|dims|dim_idx)$", ["-1"]),
    (r"reduction", ["'mean'"]),
    (r"^(fn|module|net|layer|func|function|block|model)$", ["torch.nn.Identity()", "torch.nn.Linear(dim, dim)"]),
    (r"dtype", ["torch.float32"]),
    (r"device", ["'cpu'"]),
    (r"k$|^n$|num|count|steps?$|times|order|degree|bins|chunk", ["2", "4"]),
)
WHOLE = re.compile(r"ind(ex|ices)?$|^idx|_idx$|labels?$|_ids?$|^ids|token|^targets?$|^class|position_ids|batch_index|segment", re.I)
MASK = re.compile(r"mask", re.I)
TIME = re.compile(r"^(t|time|times|timesteps?|sigma|sigmas|noise_level|snr|lengths?)$")
VECTOR = re.compile(r"^(weights?|gamma|scale|w|g|running_(mean|var)|ln_w|norm_weight)$")
BIAS = re.compile(r"^(bias|beta|shift|b|offset)$")
POSITIVE = re.compile(r"var$|std|prob|sigma|variance|running_var|scales?$|^p$|density|^dt$|distance|radius")
COND = re.compile(r"emb|cond|context|style|^c$|^s$|latent|global")
ROTARY = re.compile(r"^(cos|sin|freqs?|freqs_cis|rope|pe|pos|rotary)")
IMAGES, ROWS = "(batch, dim, height, width)", "(batch, length, dim)"
LAYOUTS = [ROWS, "(batch, dim)", IMAGES, "(batch, dim, length)", "(batch, heads, length, head_dim)", "(batch, length, heads, head_dim)", "(batch, height, width, dim)",
           "(length, dim)", "(batch, 3, height, width)", "(batch, dim, depth, height, width)", "(batch, length)", "(dim,)", "(batch, 4)", "(batch, length, 3)", "(dim, dim)"]


def layouts(text, name):
    """In the order in which the text makes them likely."""
    def count(pattern):
        return len(re.findall(pattern, text))
    first = []
    if re.search(r"image|img", name) or count(r"2d\b|2D\b|interpolate|pixel_shuffle|H, W\b|grid_sample"):
        first += [IMAGES, "(batch, 3, height, width)", "(batch, height, width, dim)"]
    if count(r"3d\b|3D\b"):
        first = ["(batch, dim, depth, height, width)"] + first
    if count(r"1d\b|1D\b"):
        first += ["(batch, dim, length)", "(batch, dim)"]
    if count(r"LayerNorm|attention|softmax|Linear|rotary|hidden_states"):
        first += [ROWS]
    if re.search(r"^(q|k|v|query|key|value|queries|keys|values)$", name):
        first = ["(batch, heads, length, head_dim)", ROWS] + first
    if re.search(r"box|bbox", name):
        first = ["(batch, 4)"] + first
    if re.search(r"point|pts|xyz|vert|coord", name):
        first = ["(batch, length, 3)"] + first
    if re.search(r"quat|rot_?vec|axis_angle", name):
        first = ["(batch, 4)", "(batch, 3)"] + first
    if re.search(r"mat(rix)?$|homograph|rotation|transform", name):
        first = ["(batch, 3, 3)", "(batch, 4, 4)", "(dim, dim)"] + first
    return list(dict.fromkeys(first + LAYOUTS))


def number(name, annotation=""):
    """Texts to try for a parameter that is no tensor."""
    words = set(re.findall(r"\w+", annotation or ""))
    if words == {"bool"}:
        return ["False", "True"]
    found = next((texts for pattern, texts in NUMBERS if re.search(pattern, name)), None)
    if words and words <= {"float", "Optional", "Union", "None"}:
        return [t for t in found or () if re.match(r"[\d.e-]+$", t)] or ["0.5"]
    if words and words <= {"int", "Optional", "None"}:
        return [t for t in found or () if not t.startswith(("torch", "'", "0."))] or ["dim", "2"]
    if found:
        return found
    if words & {"str"}:
        return []
    return ["dim", "2", "None"]


def is_tensor(name, annotation, kind):
    words = set(re.findall(r"\w+", annotation or ""))
    if TENSOR.search(annotation or ""):
        return True
    if words & NO_TENSOR and words:
        return False
    if kind == "forward":
        return True
    return not re.search(r"^(dim|axis|n|k|p|eps|alpha|beta|num_|n_|size|shape|kernel|stride|padding|reduction|dtype|device|training|heads|head_dim|groups|scale_factor|max_|min_)", name)


def draws(name, annotation, main, kind):
    """Texts to try for another tensor beside `main`."""
    found = likely_draws(name, annotation, main)
    return sorted(found, key=lambda text: text != "draw" + main) if len(name) == 1 and kind == "function" else found    # r, g, b are alike


def likely_draws(name, annotation, main):
    if "Bool" in (annotation or "") or MASK.search(name):
        return ["mask(batch, length)", "mask" + main, "mask(length, length)", "mask(batch, 1, length, length)"]
    if WHOLE.search(name) or "Long" in (annotation or "") or "Int" in (annotation or ""):
        return ["whole(batch, length)", "whole(batch)", "draw" + main, "whole" + main]
    if TIME.search(name):
        return ["positive(batch)", "draw" + main]
    if VECTOR.search(name):
        return ["draw(dim)", "draw(dim, dim)", "draw" + main, "draw(dim, dim, 3, 3)", "draw(hidden, dim)"]
    if BIAS.search(name):
        return ["draw(dim)", "draw" + main]
    if ROTARY.search(name):
        return ["draw(length, head_dim)", "draw" + main, "draw(batch, length, head_dim)", "draw(length, dim)"]
    draw = "positive" if POSITIVE.search(name) else "draw"
    if COND.search(name):
        return [f"{draw}(batch, dim)", draw + main]
    return [draw + main, f"{draw}(batch, dim)", f"{draw}(batch)", f"{draw}(dim)", f"{draw}(dim, dim)"]


def required(function, skip=0):
    """Names of the parameters without a default."""
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    return [p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def config(attributes):
    """A namespace with what a module reads of its configuration."""
    parts = []
    for name in sorted(attributes):
        texts = number(name)
        if re.search(r"hidden_act|activation_function|act_fn|hidden_activation", name):
            texts = ["'gelu'"]
        parts.append(f"{name}={texts[0] if texts else repr('')}")
    return f"types.SimpleNamespace({', '.join(parts)})"


def makings(names, annotations, attributes):
    """Ways to make a module: lists of (parameter, text)."""
    choices = []
    for name in names:
        if re.search(r"^(config|cfg|args|conf|hparams|configs?_?)$", name):
            choices.append([config(attributes)])
        else:
            texts = number(name, annotations.get(name, ""))
            if not texts:
                return []
            choices.append(texts[:4])
    ways = sorted(itertools.product(*[range(len(c)) for c in choices]), key=lambda w: (sum(w), w))
    return [[(n, c[i]) for n, c, i in zip(names, choices, way)] for way in ways[:MOST_MADE]]


def givings(names, annotations, text, kind):
    """What to call it with: lists of (parameter, text), likely ones first."""
    tensors = [n for n in names if is_tensor(n, annotations.get(n, ""), kind)]
    if not tensors:
        return
    first = tensors[0]
    mains = layouts(text, first)
    plain = "whole" if WHOLE.search(first) and kind == "forward" or "Long" in annotations.get(first, "") else "positive" if POSITIVE.search(first) else "draw"
    found = []
    for rank, main in enumerate(mains):
        choices = []
        for name in names:
            if name == first:
                choices.append([plain + main])
            elif name in tensors:
                choices.append(draws(name, annotations.get(name, ""), main, kind)[:5])
            else:
                choices.append((number(name, annotations.get(name, "")) or ["None"])[:3] + (["-1"] if re.search("dim|axis", name) else []))
        for way in itertools.islice(itertools.product(*[range(len(c)) for c in choices]), 200):
            found.append((rank + 2 * sum(way), rank, [(n, c[i]) for n, c, i in zip(names, choices, way)]))
    found.sort(key=lambda f: f[:2])
    for _, _, way in found[:MOST_GIVEN]:
        yield way
