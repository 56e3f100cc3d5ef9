"""Masks, normalisers, scoring functions, attention pooling with one and with many heads: how each is drawn, and what it is
in PyTorch: its own function where that has the masks, else written out."""
import math

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import by_distance, dot, hard, masked_softmax, normalize, seen_keys
from draw import moderate, positive
from heads import rotate
from kinks import Rejected
from random_layers import weights_of
from random_ops import op

FIELDS = ("valid_lengths", "seen", "bias", "distance_bias")


class Mask:
    """What a step says of its mask, the numbers of its tensors in the order of FIELDS, and the formula."""
    def __init__(self, words=None, inputs=(None,) * 4):
        self.words, self.inputs = words or {}, list(inputs)

    def biased(self, scores, lengths, seen, bias, distance_bias):
        """Scores with their biases, and which are seen."""
        words = {key: self.words[key] for key in ("causal", "window", "offset") if key in self.words}
        if lengths is not None:
            lengths = lengths.to(torch.float64)
        if seen is not None:
            seen = seen.expand(scores.shape)
        allowed = seen_keys(scores, lengths, seen=seen, **words)
        if bias is not None:
            allowed, scores = allowed & (bias > -math.inf), scores + bias
        if distance_bias is not None:
            table = distance_bias if distance_bias.dim() > 1 else distance_bias[None]
            by_place = by_distance(table, *scores.shape[-2:], words.get("offset", 0))
            allowed, scores = allowed & (by_place > -math.inf), scores + by_place
        return scores, allowed

    def softmax(self, scores, *fields):
        scores, allowed = self.biased(scores, *fields)
        if self.words.get("million"):
            return F.softmax(scores.masked_fill(~allowed, -1e6), -1)
        return masked_softmax(scores, allowed)

    def added(self, shape, *fields):
        """As numbers that are added to the scores, −∞ where nothing is seen; every query must see something."""
        scores, allowed = self.biased(torch.zeros(shape, dtype=torch.float64), *fields)
        if not allowed.any(-1).all():
            raise Rejected("PyTorch wants a key for each query")
        return scores.masked_fill(~allowed, -math.inf)

    def prefixed(self, prefix):
        return {prefix + key: value for key, value in self.words.items()}


def draw_shape(p, scores, last):
    """Of a tensor that broadcasts to scores (B, heads, Q, K) or (B, Q, K), with that last axis. Three axes are not taken
    for heads unless the first is 1."""
    shape = [*scores[:-1], last][p.below(len(scores)):]
    shape = [1 if i + 1 < len(shape) and p.chance(0.35) else size for i, size in enumerate(shape)]
    if len(scores) == 4 and len(shape) == 3:
        shape[0] = 1
    return shape


def draw_mask(p, scores, everything=True, much=0.35):
    """For scores of that shape."""
    batch, queries, keys = scores[0], *scores[-2:]
    words, inputs = {}, [None] * 4
    if p.chance(much):
        words["causal"] = True
    if p.chance(much / 2):
        words["window"] = p.between(1, 4)
    if p.chance(much):
        words["offset"] = p.between(-2, 4)
    if p.chance(much):
        shape = [batch] if p.chance(0.6) else [batch, queries]
        inputs[0] = p.input(p.random.integers(0, keys + 2, shape), p.one(["int64", "int32", "uint8", "float"]))
    if p.chance(much / 2):
        inputs[1] = p.input(p.random.random(draw_shape(p, scores, keys)) < 0.7, "bool")
    if p.chance(much / 2):
        inputs[2] = draw_bias(p, draw_shape(p, scores, keys), everything)
    if p.chance(much / 2):
        inputs[3] = draw_bias(p, draw_shape(p, scores, 2 * p.between(0, 4) + 1), everything)
    return Mask(words, inputs)


def draw_bias(p, shape, hides):
    """Some numbers are −∞. One number for all keys has the gradient 0, a difference of large ones."""
    numbers = p.random.normal(size=shape)
    if hides and p.chance(0.4):
        numbers[p.random.random(shape) < 0.15] = -math.inf
    return p.input(numbers, gradient=shape[-1] > 1 and p.chance(0.7))


def draw_scores(p):
    """A value (B, Q, K) or (B, heads, Q, K)."""
    return p.some(3, 4, domain=moderate)


@op
def by_distance_(p):
    queries, keys, offset, by_query = p.between(1, 5), p.between(1, 6), p.between(-2, 3), p.chance(0.5)
    fits = lambda t: t.shape[-1] % 2 == 1 and (not by_query or t.dim() > 1 and t.shape[-2] == queries)
    shape = [*p.shape(0, 2), *([queries] if by_query else []), 2 * p.between(0, 4) + 1]
    x = p.find(lambda t: t.dim() and t.dtype == torch.float64 and fits(t)) if p.chance(0.5) else None
    x = p.leaf(shape) if x is None else x

    def function(x):
        x = x if by_query else x.unsqueeze(-2)
        return by_distance(x, queries, keys, offset)
    p.step("by_distance", [x], function, queries=queries, keys=keys, offset=offset, by_query=by_query)


@op
def mask_seen(p):
    x = draw_scores(p)
    mask = draw_mask(p, list(p.values[x].shape))
    p.step("mask_seen", [x, *mask.inputs], lambda x, *fields: mask.biased(x.detach(), *fields)[1], chooses=True,
           **mask.words)


@op
def mask_add_biases(p):
    x = draw_scores(p)
    mask = draw_mask(p, list(p.values[x].shape), everything=False)
    p.step("mask_add_biases", [x, *mask.inputs], lambda x, *fields: mask.biased(x, *fields)[0], **mask.words)


# --- normalisers ---

def uniform(scores, allowed):
    return allowed / allowed.sum(-1, keepdim=True).clamp(min=1).to(scores.dtype)


def weigh(name, mask, scores, *fields):
    """The weights of that normaliser."""
    if name == "softmax":
        return mask.softmax(scores, *fields)
    scores, allowed = mask.biased(scores, *fields)
    scores = torch.where(allowed, scores, 0.0)
    if name == "sum":
        return normalize(scores, allowed)
    if name == "none":
        return scores
    return hard(scores.detach(), allowed) if name == "hard" else uniform(scores.detach(), allowed)


def draw_normalizer(name):
    def draw(p):
        x = p.some(3, 4, domain=lambda t: moderate(t) and (name != "sum" or positive(t)))
        mask = draw_mask(p, list(p.values[x].shape), everything=name != "sum")
        if name == "softmax" and p.chance(0.15):
            mask.words["million"] = True
        if name == "sum":
            mask.inputs[2:] = [None, None]  # sums near 0
        p.step(f"masked_{name}", [x, *mask.inputs], lambda x, *fields: weigh(name, mask, x, *fields), jumps=True,
               cancels=True, normalizer=name, **mask.words)
    draw.__name__ = f"masked_{name}"
    op(draw)


for name in ("softmax", "sum", "none", "hard", "uniform"):
    draw_normalizer(name)


# --- scoring functions ---

def squares(q, k):
    """‖q − k‖²"""
    return (q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)


def padded(q, k):
    size = max(q.shape[-1], k.shape[-1])
    return dot(F.pad(q, (0, size - q.shape[-1])), F.pad(k, (0, size - k.shape[-1]))) / math.sqrt(size)


def cosine(q, k, width):
    if min(x.norm(dim=-1).min().item() if x.numel() else 1 for x in (q, k)) < 0.2:
        raise Rejected("too short to have an angle")
    return F.cosine_similarity(q.unsqueeze(-2), k.unsqueeze(-3), -1) / width


def additive(q, k, key_weight, query_weight, last):
    return torch.tanh(F.linear(q, query_weight).unsqueeze(-2) + F.linear(k, key_weight).unsqueeze(-3)) @ last[0]


KERNELS = {"gaussian": lambda u: torch.exp(-u / 2), "boxcar": lambda u: (u < 1).to(u.dtype), "constant": torch.ones_like,
           "epanechnikov": lambda u: F.relu(1 - u.sqrt())}  # of u²
SCORINGS = {"dot": dot, "scaled_dot": lambda q, k: dot(q, k) / math.sqrt(q.shape[-1]), "padded_dot": padded,
            "bilinear": lambda q, k, m: dot(q @ m, k), "additive": additive,
            "cosine": cosine,
            "log_gaussian": lambda q, k, width: -squares(q, k) / (2 * width ** 2), "relative": None,
            **{name: lambda q, k, width, kernel=kernel: kernel(squares(q, k) / width ** 2)
               for name, kernel in KERNELS.items()}}


class Scoring:
    """A scoring function drawn for queries and keys of these sizes: what a step says of it, and its weights."""
    def __init__(self, p, query_size, key_size, names=tuple(SCORINGS), value_size=0, prefix=""):
        alike = [name for name in names if query_size == key_size or name in ("padded_dot", "bilinear", "additive")]
        if query_size == 1:
            alike = [name for name in alike if name not in ("cosine", "epanechnikov")]  # ±1, and a kink at each q = k
        self.name = name = p.one(alike)
        self.words = {"scoring": name, "query_size": query_size, "key_size": key_size}
        self.width = p.real(0.6, 3)
        shapes = {}
        if name == "bilinear":
            shapes = {"M": (query_size, key_size)}
        elif name == "additive":
            hidden = self.words["hidden"] = p.size()
            shapes = {"W_k.weight": (hidden, key_size), "W_q.weight": (hidden, query_size), "w_v.weight": (1, hidden)}
        elif name == "relative":
            self.reach = self.words["reach"] = p.between(0, 3)
            self.words["value_size"] = value_size = value_size if p.chance(0.5) else 0
            shapes = {"key_table": (2 * self.reach + 1, query_size),
                      **({"value_table": (2 * self.reach + 1, value_size)} if value_size else {})}
        named, self.inputs = weights_of(p, {prefix + key: shape for key, shape in shapes.items()})
        if name in ("cosine", "log_gaussian", *KERNELS):
            self.words["width"] = self.width
            if name not in ("boxcar", "constant") and p.chance(0.4):
                self.words["learns"] = True
                key = prefix + ("temperature" if name == "cosine" else "width")
                named, self.inputs = {"names": [key]}, [p.input([self.width], gradient=True)]
                named["weights"] = self.inputs
        self.words.update(named)

    def __call__(self, q, k, *weights, offset=0):
        """The scores. Of relative positions they count distances from the mask's offset on."""
        if self.name == "relative":
            scores, size = dot(q, k), q.shape[-1]
            return (scores + by_distance(dot(q, weights[0]), *scores.shape[-2:], offset)) / math.sqrt(size)
        if "width" in self.words and not weights:
            weights = [torch.tensor([self.width], dtype=q.dtype)]
        return SCORINGS[self.name](q, k, *weights)

    def pool(self, scores_to_weights, q, k, v, *weights, offset=0):
        """Results and weights."""
        w = scores_to_weights(self(q, k, *weights, offset=offset))
        y = w @ v
        if self.name == "relative" and len(weights) > 1:
            tables = weights[1].T.expand(*w.shape[:-2], -1, -1)[..., None, :]  # (…, v, 1, 2R + 1)
            y = y + (w.unsqueeze(-3) * by_distance(tables, *w.shape[-2:], offset)).sum(-1).transpose(-1, -2)
        return y, w


@op
def score(p):
    q = p.some(2, 4, domain=lambda t: t.shape[-1] > 0 and moderate(t))
    *batch, _, size = p.values[q].shape
    batch = [1 if p.chance(0.2) else n for n in batch]
    k = p.shaped([*batch[p.below(len(batch) + 1):], p.size(), size if p.chance(0.7) else p.size()], moderate)
    scoring = Scoring(p, size, p.values[k].shape[-1])
    p.step("score", [q, k, *scoring.inputs], scoring, jumps=True, cancels=True, **scoring.words)


def draw_sizes(p):
    """Batch, heads, groups, queries, keys, size of queries; now and then larger than the tiles of a fused loop."""
    if p.chance(0.06):
        return 1, p.one([1, 2]), 1, p.between(1, 70), p.between(1, 150), p.between(1, 40)
    heads = p.between(1, 4)
    groups = p.one([n for n in range(1, heads + 1) if heads % n == 0])
    return p.between(1, 3), heads, groups, p.between(1, 6), p.between(1, 7), p.between(1, 6)


def built_in(q, k, v, added):
    """PyTorch's scaled dot-product attention, in the way that has second derivatives."""
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, k, v, added)


@op
def attention(p):
    """Attention pooling: every scoring function, normaliser and mask."""
    batch, heads, groups, queries, keys, size = draw_sizes(p)
    if p.chance(0.5):
        heads, groups, middle, few = 1, 1, [], []
    else:
        middle, few = [heads], [groups]
    key_size, value_size = size if p.chance(0.7) else p.between(1, 6), p.between(1, 6)
    q = p.shaped([batch, *middle, queries, size], moderate)
    k = q if queries == keys and size == key_size and middle == few and p.chance(0.3) else p.shaped(
        [batch, *few, keys, key_size], moderate)
    v = k if value_size == key_size and p.chance(0.4) else p.shaped([batch, *few, keys, value_size], moderate)
    scoring = Scoring(p, size, key_size, value_size=value_size,
                      names=("scaled_dot", "additive") if p.chance(0.5) else tuple(SCORINGS))
    normalizer = "softmax" if p.chance(0.7) else p.one(["sum", "none", "hard", "uniform"])
    if normalizer == "sum" and scoring.name not in KERNELS:
        raise Rejected("sums near 0")
    mask = draw_mask(p, [batch, *middle, queries, keys], everything=normalizer != "sum")
    if normalizer == "sum":
        mask.inputs[2:] = [None, None]
    if normalizer == "softmax" and p.chance(0.1):
        mask.words["million"] = True
    both, offset = p.chance(0.4), mask.words.get("offset", 0)
    by_pytorch = scoring.name == "scaled_dot" and normalizer == "softmax" and not mask.words.get("million")

    def function(q, k, v, *rest):
        fields, weights = rest[:4], rest[4:]
        k, v = (x.repeat_interleave(heads // groups, 1) if middle else x for x in (k, v))
        y, w = scoring.pool(lambda scores: weigh(normalizer, mask, scores, *fields), q, k, v, *weights, offset=offset)
        if by_pytorch and mask.biased(w, *fields)[1].any(-1).all():
            y = built_in(q, k, v, mask.added(w.shape, *fields))
        return [y, w.detach()] if both else y
    p.step("attention", [q, k, v, *mask.inputs, *scoring.inputs], function, jumps=True, cancels=True, normalizer=normalizer,
           weights_too=both, prepared=p.chance(0.25), plain=p.chance(0.3), **mask.words, **scoring.words)


# --- many heads ---

def packed_by_pytorch(x, heads, mask, names, weights):
    """torch.nn.MultiheadAttention's own function. x: queries, keys, values."""
    named, packed = dict(zip(names, weights)), "in_proj_weight" in names
    q, k, v = (tensor.transpose(0, 1) for tensor in x)
    y, w = F.multi_head_attention_forward(
        q, k, v, q.shape[-1], heads, named.get("in_proj_weight"), named.get("in_proj_bias"), None, None, False, 0.0,
        named["out_proj.weight"], named.get("out_proj.bias"), need_weights=True, average_attn_weights=False,
        attn_mask=mask.flatten(0, 1), use_separate_proj_weight=not packed,
        **{f"{part}_proj_weight": named.get(f"{part}_proj_weight") for part in "qkv"})
    return y.transpose(0, 1), w


@op
def multi_head(p):
    batch, heads, groups, queries, keys, one = draw_sizes(p)
    groups = heads if p.chance(0.5) else groups
    rotary = p.chance(0.2)
    one = 2 * one if rotary else one
    size = heads * one
    itself = p.chance(0.5)
    value_hidden = size if p.chance(0.8) else heads * p.between(1, 3)
    inputs = [size] * 3 if itself or p.chance(0.5) else [size if p.chance(0.5) else p.size(), p.size(), p.size()]
    out, bias, gpt2 = size if p.chance(0.8) else p.size(), p.chance(0.7), len(set(inputs)) == 1 and p.chance(0.2)
    keys = queries if itself else keys
    q = p.shaped([batch, queries, inputs[0]], moderate)
    k = q if itself else p.shaped([batch, keys, inputs[1]], moderate)
    v = q if itself else k if inputs[1] == inputs[2] and p.chance(0.4) else p.shaped([batch, keys, inputs[2]], moderate)
    parts = [size, one * groups, value_hidden // heads * groups]
    packed = len(set(inputs)) == 1
    shapes = ({"c_attn.weight" if gpt2 else "in_proj_weight": (sum(parts), inputs[0])} if packed else
              {f"{name}_proj_weight": (rows, columns) for name, rows, columns in zip("qkv", parts, inputs)})
    if bias:
        shapes["c_attn.bias" if gpt2 else "in_proj_bias"] = (sum(parts),)
    last = "c_proj" if gpt2 else "out_proj"
    shapes[last + ".weight"] = (out, value_hidden)
    if bias:
        shapes[last + ".bias"] = (out,)
    words, weights = weights_of(p, shapes)
    scoring = Scoring(p, one, one, ("additive", "bilinear", "cosine", "dot"), prefix="attention.") if p.chance(
        0.25) else None
    if scoring:
        for key in ("names", "weights"):
            scoring.words[key] = words[key] + scoring.words[key]
        words, weights = scoring.words, weights + scoring.inputs
    head_mask = p.shaped([heads]) if p.chance(0.15) else None
    mask = draw_mask(p, [batch, heads, queries, keys])
    both, offset = p.chance(0.3), mask.words.get("offset", 0)
    by_pytorch = not (rotary or scoring or gpt2) and groups == heads and inputs[0] == size == value_hidden == out

    def pool(q, k, v, fields, rest):
        split = lambda x, count: x.unflatten(-1, (count, x.shape[-1] // count)).transpose(1, 2)
        repeat = lambda x: x.repeat_interleave(heads // groups, 1)
        q, k, v = split(q, heads), split(k, groups), repeat(split(v, groups))
        if rotary:
            q, k = rotate(q, offset), rotate(k)
        k = repeat(k)
        scores = scoring(q, k, *rest) if scoring else SCORINGS["scaled_dot"](q, k)
        w = mask.softmax(scores, *fields)
        return w @ v, w

    def function(q, k, v, *rest):
        fields, head_mask, weights = rest[:4], rest[4], list(rest[5:])
        if by_pytorch and head_mask is None:
            shape = (batch, heads, queries, keys)
            if mask.biased(torch.zeros(shape, dtype=q.dtype), *fields)[1].any(-1).all():
                y, w = packed_by_pytorch((q, k, v), heads, mask.added(shape, *fields), words["names"], weights)
                return [y, w.detach()] if both else y
        matrices = weights.pop(0).split(parts) if packed else [weights.pop(0) for _ in range(3)]
        biases = weights.pop(0).split(parts) if bias else [None] * 3
        projected = [F.linear(x, matrix, b) for x, matrix, b in zip((q, k, v), matrices, biases)]
        output = [weights.pop(0) for _ in range(1 + bias)]
        y, w = pool(*projected, fields, weights)
        if head_mask is not None:
            y = y * head_mask[:, None, None]
        y = F.linear(y.transpose(1, 2).flatten(2), *output)
        return [y, w.detach()] if both else y
    sizes = {"in_query": inputs[0], "in_key": inputs[1], "in_value": inputs[2], "out_size": out}
    p.step("multi_head", [q, k, v, *mask.inputs, head_mask, *weights], function, cancels=True, size=size, heads=heads,
           groups=groups, value_hidden=value_hidden, bias=bias, rotary=rotary, gpt2=gpt2, weights_too=both, plain=p.chance(0.3), **sizes,
           **mask.words, **words)
