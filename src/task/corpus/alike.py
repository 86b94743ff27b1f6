"""alike.py - near-duplicates by their text, and clusters by what operators they run.

Two texts are one where their trees are, names aside, or where MinHash (datasketch) finds most of their shingles in both.
SPDX-License-Identifier: Apache-2.0
"""
import ast
import collections
import functools
import hashlib
import io
import keyword
import tokenize

SHINGLE, PERMUTATIONS = 5, 64
NEAR = 0.8       # of the shingles of two texts that are near-duplicates
SIMILAR = 0.6    # of the operators, in pairs, of two tasks of a cluster

FAMILIES = (    # the first that an operator belongs to
    ("attention", ("scaled_dot_product", "_scaled_dot_product", "flash_attention")),
    ("convolution", ("convolution", "conv1d", "conv2d", "conv3d", "conv_transpose")),
    ("normalization", ("native_batch_norm", "_native_batch_norm", "native_layer_norm", "native_group_norm", "batch_norm", "layer_norm", "group_norm", "rms_norm",
                       "linalg_vector_norm", "_weight_norm", "_fused_rms_norm", "instance_norm", "cudnn_batch_norm")),
    ("loss", ("nll_loss", "mse_loss", "smooth_l1", "binary_cross_entropy", "huber_loss", "kl_div", "l1_loss", "soft_margin")),
    ("pooling", ("max_pool", "avg_pool", "adaptive_avg", "adaptive_max", "_adaptive_avg", "max_unpool")),
    ("resampling", ("upsample", "grid_sampler", "_upsample", "affine_grid", "pixel_shuffle", "pixel_unshuffle")),
    ("recurrence", ("lstm", "gru", "rnn", "_thnn")),
    ("spectral", ("_fft", "fft", "stft", "istft")),
    ("linear-algebra", ("linalg", "_linalg", "cholesky", "svd", "inverse", "triangular_solve", "det", "cdist", "_cdist", "_euclidean_dist", "cross")),
    ("sort", ("sort", "topk", "argsort", "kthvalue", "unique", "median", "searchsorted", "bucketize")),
    ("scan", ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp", "_cum")),
    ("softmax", ("softmax", "_softmax", "_log_softmax", "log_softmax", "logsumexp")),
    ("matmul", ("mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "mv", "dot", "addmv", "einsum", "_trilinear")),
    ("embedding", ("embedding", "one_hot")),
    ("scatter", ("scatter", "index_put", "index_add", "index_copy", "_index_put", "masked_scatter", "index_fill")),
    ("gather", ("gather", "index_select", "index", "take", "masked_select", "nonzero")),
    ("padding", ("pad", "constant_pad", "reflection_pad", "replication_pad", "im2col", "col2im", "unfold")),
    ("reduction", ("sum", "mean", "var", "std", "amax", "amin", "max", "min", "prod", "argmax", "argmin", "any", "all", "norm", "var_mean", "aminmax", "count_nonzero")),
    ("activation", ("gelu", "relu", "sigmoid", "tanh", "silu", "elu", "leaky_relu", "hardtanh", "hardswish", "hardsigmoid", "softplus", "mish", "celu", "_prelu_kernel",
                    "erf", "hardshrink", "softshrink", "threshold", "logsigmoid", "log_sigmoid_forward", "relu6", "glu", "rrelu", "clamp_min")),
    ("elementwise", ("add", "mul", "sub", "div", "pow", "exp", "log", "sqrt", "rsqrt", "where", "clamp", "neg", "abs")),
)


def tree_hash(text):
    """Of the syntax, with every name replaced by the number of its first use in its definition."""
    tree, shared = ast.parse(text), {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            shared.setdefault(node.name, f"g{len(shared)}")
    for node in tree.body:
        unnamed(node, shared)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def unnamed(definition, shared):
    names = {}

    def number(name):
        return shared.get(name) or names.setdefault(name, f"n{len(names)}")

    for node in ast.walk(definition):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            node.attr = number("." + node.attr)
    for node in ast.walk(definition):
        if isinstance(node, ast.Name):
            node.id = number(node.id)
        elif isinstance(node, ast.arg):
            node.arg = number(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node.name = number(node.name)
        elif isinstance(node, ast.keyword) and node.arg:
            node.arg = "k"
        elif isinstance(node, ast.alias):
            node.name, node.asname = node.name.split(".")[-1], None


def shingles(text):
    words = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            words.append(token.string if keyword.iskeyword(token.string) or len(token.string) > 2 else "v")
        elif token.type in (tokenize.OP, tokenize.NUMBER):
            words.append(token.string)
    return {" ".join(words[i:i + SHINGLE]).encode() for i in range(max(1, len(words) - SHINGLE + 1))}


class Duplicates:
    """The first of each kind stays.  `known` holds what was computed of a text before, and is filled."""

    def __init__(self, minhash, known=None):
        self.known, self.trees = {} if known is None else known, {}
        self.index = minhash and __import__("datasketch").MinHashLSH(threshold=NEAR, num_perm=PERMUTATIONS)

    def facts(self, text):
        digest = hashlib.sha256(text.encode()).hexdigest()[:24]
        if digest not in self.known or self.index and len(self.known[digest]) < 2:
            self.known[digest] = [tree_hash(text)] + ([sketched(shingles(text))] if self.index else [])
        return self.known[digest]

    def of(self, name, text):
        """('', '') or what it is a duplicate of and how that was seen."""
        facts = self.facts(text)
        if facts[0] in self.trees:
            return self.trees[facts[0]], "the same tree"
        self.trees[facts[0]] = name
        if not self.index:
            return "", ""
        sketch = of_values(facts[1])
        near = self.index.query(sketch)
        if near:
            return sorted(near)[0], "MinHash"
        self.index.insert(name, sketch, check_duplication=False)
        return "", ""


@functools.cache
def empty_sketch():
    from datasketch import MinHash
    return MinHash(num_perm=PERMUTATIONS)


def sketched(parts):
    sketch = empty_sketch().copy()
    sketch.update_batch(sorted(parts))
    return [int(v) for v in sketch.hashvalues]


def of_values(values):
    sketch = empty_sketch().copy()
    sketch.hashvalues[:] = values
    return sketch


def has_minhash():
    try:
        import datasketch  # noqa: F401
        return True
    except ImportError:
        return False


# ---- operator facts ------------------------------------------------------------------------------------------------------

VIEWS = {"view", "_unsafe_view", "reshape", "t", "transpose", "permute", "expand", "squeeze", "unsqueeze", "slice", "select", "alias", "detach", "clone", "_to_copy",
         "split", "split_with_sizes", "unbind", "as_strided", "contiguous", "copy", "empty", "zeros", "ones", "full", "arange", "lift_fresh", "empty_like", "zeros_like",
         "ones_like", "scalar_tensor", "chunk", "unsafe_split", "view_as_real", "view_as_complex", "_reshape_alias", "empty_strided", "new_zeros", "new_ones", "new_empty"}


def family(operators):
    names = set(operators)
    for title, members in FAMILIES:
        if any(n == m or len(m) > 4 and n.startswith(m) for n in names for m in members):
            return title
    return "movement" if names <= VIEWS | {"cat", "stack", "roll", "flip", "repeat", "tril", "triu"} else "other"


def facts(operators):
    """What two tasks of one cluster share: operators that compute, alone and in pairs."""
    plain = [o for o in operators if o not in VIEWS]
    counts = collections.Counter(plain)
    return {f"{o}:{i}" for o, n in counts.items() for i in range(min(n, 4))} | {f"{a}>{b}" for a, b in zip(plain, plain[1:])} or {"nothing"}


def clusters(rows):
    """{id: cluster}, the cluster named by its first member; rows are (id, family, operators) in order."""
    heads, found = collections.defaultdict(list), {}
    for name, title, operators in rows:
        mine = facts(operators)
        head = next((h for h, theirs in heads[title] if len(mine & theirs) >= SIMILAR * len(mine | theirs)), None)
        if head is None:
            heads[title].append((name, mine))
            head = name
        found[name] = head
    return found
