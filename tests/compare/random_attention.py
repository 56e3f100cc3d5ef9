"""Scoring functions, attention pooling with one and with many heads: how each is drawn, and what it is in PyTorch: its
own function where that has the masks, else written out."""
import math

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from attention import by_relative_position, dot
from draw import moderate
from heads import rotate
from kinks import Rejected
from program import largest
from random_layers import weights_of
from random_masks import draw_mask, weigh
from random_ops import op

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


KERNELS = {"gaussian": lambda u: torch.exp(-u / 2), "boxcar": lambda u: (u < 1).to(u.dtype),
           "constant": torch.ones_like,
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
            return (scores + by_relative_position(dot(q, weights[0]), *scores.shape[-2:], offset)) / math.sqrt(size)
        if "width" in self.words and not weights:
            weights = [torch.tensor([self.width], dtype=q.dtype)]
        return SCORINGS[self.name](q, k, *weights)

    def pool(self, scores_to_weights, q, k, v, *weights, offset=0):
        """Results and weights."""
        w = scores_to_weights(self(q, k, *weights, offset=offset))
        y = w @ v
        if self.name == "relative" and len(weights) > 1:
            tables = weights[1].T.expand(*w.shape[:-2], -1, -1)[..., None, :]  # (…, v, 1, 2R + 1)
            y = y + (w.unsqueeze(-3) * by_relative_position(tables, *w.shape[-2:], offset)).sum(-1).transpose(-1, -2)
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
    """Batch, heads, groups, queries, keys, size of queries; some larger than the tiles of a fused loop, some 0."""
    if p.large or p.chance(0.05):
        return p.between(1, 2), p.one([1, 2]), 1, p.between(1, 70), p.between(1, 150), p.between(1, 40)
    heads = p.between(1, 4)
    groups = p.one([n for n in range(1, heads + 1) if heads % n == 0])
    sizes = p.between(1, 3), p.between(1, 6), p.between(1, 7)
    batch, queries, keys = [p.one([0, n]) for n in sizes] if p.chance(0.05) else sizes
    return batch, heads, groups, queries, keys, p.between(1, 6)


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
        return [y, w] if both else y
    # dscores = w (g v − Σ w g v) rounds as g v does; times keys it is dqueries, times queries dkeys
    cancels = max(1.0, largest(p.values[v]) * max(largest(p.values[q]), largest(p.values[k])))
    p.step("attention", [q, k, v, *mask.inputs, *scoring.inputs], function, jumps=True, cancels=cancels,
           normalizer=normalizer, weights_too=both, prepared=p.chance(0.25), plain=p.chance(0.3), **mask.words,
           **scoring.words)


# --- many heads ---

class Heads:
    """Sizes of multi-head attention, drawn: what a step says of them, and the formula."""
    def __init__(self, p):
        self.batch, self.heads, groups, self.queries, keys, one = draw_sizes(p)
        self.groups, self.rotary, itself = self.heads if p.chance(0.5) else groups, p.chance(0.2), p.chance(0.5)
        self.one = 2 * one if self.rotary else one
        self.size = self.heads * self.one
        self.keys = self.queries if itself else keys
        self.value_hidden = self.size if p.chance(0.8) else self.heads * p.between(1, 3)
        self.inputs = [self.size if itself or p.chance(0.5) else p.size()] * 3
        if not itself and p.chance(0.4):
            self.inputs = [self.size if p.chance(0.5) else p.size(), p.size(), p.size()]
        self.packed = len(set(self.inputs)) == 1
        self.out, self.bias = self.size if p.chance(0.8) else p.size(), p.chance(0.7)
        self.gpt2 = self.packed and p.chance(0.2)
        self.parts = [self.size, self.one * self.groups, self.value_hidden // self.heads * self.groups]
        self.words = {"size": self.size, "heads": self.heads, "groups": self.groups, "value_hidden": self.value_hidden,
                      "bias": self.bias, "rotary": self.rotary, "gpt2": self.gpt2, "in_query": self.inputs[0],
                      "in_key": self.inputs[1], "in_value": self.inputs[2], "out_size": self.out}
        self.tensors = self.draw_tensors(p, itself)
        self.scoring = Scoring(p, self.one, self.one, ("additive", "bilinear", "cosine", "dot"),
                               prefix="attention.") if p.chance(0.25) else None

    def draw_tensors(self, p, itself):
        """Queries, keys, values; some may be one tensor."""
        draw = lambda length, size: p.shaped([self.batch, length, size], moderate)
        q = draw(self.queries, self.inputs[0])
        k = q if itself else draw(self.keys, self.inputs[1])
        same = itself or self.inputs[1] == self.inputs[2] and p.chance(0.4)
        return [q, k, k if same else draw(self.keys, self.inputs[2])]

    def shapes(self):
        """Of the weights, in the order in which the formula takes them."""
        first, last = ("c_attn.", "c_proj.") if self.gpt2 else ("in_proj_", "out_proj.")
        if self.packed:
            shapes = {first + "weight": (sum(self.parts), self.inputs[0])}
        else:
            shapes = {f"{name}_proj_weight": sizes for name, *sizes in zip("qkv", self.parts, self.inputs)}
        if self.bias:
            shapes[first + "bias"] = (sum(self.parts),)
        shapes[last + "weight"] = (self.out, self.value_hidden)
        if self.bias:
            shapes[last + "bias"] = (self.out,)
        return shapes

    def pool(self, mask, fields, q, k, v, weights):
        """Results (B, heads, Q, v) and weights of what is projected."""
        split = lambda x, count: x.unflatten(-1, (count, x.shape[-1] // count)).transpose(1, 2)
        repeat = lambda x: x.repeat_interleave(self.heads // self.groups, 1)
        q, k, v = split(q, self.heads), split(k, self.groups), split(v, self.groups)
        if self.rotary:
            q, k = rotate(q, mask.words.get("offset", 0)), rotate(k)
        score = self.scoring or SCORINGS["scaled_dot"]
        w = mask.softmax(score(q, repeat(k), *weights), *fields)
        return w @ repeat(v), w

    def __call__(self, mask, fields, head_mask, inputs, weights):
        """The formula."""
        matrices = weights.pop(0).split(self.parts) if self.packed else [weights.pop(0) for _ in range(3)]
        biases = weights.pop(0).split(self.parts) if self.bias else [None] * 3
        projected = [F.linear(*each) for each in zip(inputs, matrices, biases)]
        output = [weights.pop(0) for _ in range(1 + self.bias)]
        y, w = self.pool(mask, fields, *projected, weights)
        if head_mask is not None:
            y = y * head_mask[:, None, None]
        return F.linear(y.transpose(1, 2).flatten(2), *output), w

    def is_pytorchs(self):
        return not (self.rotary or self.scoring or self.gpt2) and self.groups == self.heads and (
            self.inputs[0] == self.size == self.value_hidden == self.out)

    def by_pytorch(self, added, inputs, weights):
        """torch.nn.MultiheadAttention's own function."""
        named = dict(zip(self.shapes(), weights))
        q, k, v = (tensor.transpose(0, 1) for tensor in inputs)
        y, w = F.multi_head_attention_forward(
            q, k, v, self.size, self.heads, named.get("in_proj_weight"), named.get("in_proj_bias"), None, None, False,
            0.0, named["out_proj.weight"], named.get("out_proj.bias"), need_weights=True, average_attn_weights=False,
            attn_mask=added.flatten(0, 1), use_separate_proj_weight=not self.packed,
            **{f"{part}_proj_weight": named.get(f"{part}_proj_weight") for part in "qkv"})
        return y.transpose(0, 1), w


@op
def multi_head(p):
    """Multi-head attention, by PyTorch's function where it has all that is asked."""
    layer = Heads(p)
    shape = [layer.batch, layer.heads, layer.queries, layer.keys]
    words, weights = weights_of(p, layer.shapes())
    if layer.scoring:
        weights = weights + layer.scoring.inputs
        words = {**layer.scoring.words, **{key: words[key] + layer.scoring.words[key] for key in words}}
    head_mask = p.shaped([layer.heads]) if p.chance(0.15) else None
    mask, both = draw_mask(p, shape), p.chance(0.3)

    def function(q, k, v, *rest):
        fields, head_mask, weights = rest[:4], rest[4], list(rest[5:])
        _, seen = mask.biased(torch.zeros(shape, dtype=q.dtype), *fields)
        if layer.is_pytorchs() and head_mask is None and seen.any(-1).all():
            y, w = layer.by_pytorch(mask.added(shape, *fields), (q, k, v), weights)
        else:
            y, w = layer(mask, fields, head_mask, (q, k, v), weights)
        return [y, w] if both else y
    p.step("multi_head", [*layer.tensors, *mask.inputs, head_mask, *weights], function, cancels=True, weights_too=both,
           plain=p.chance(0.3), **layer.words, **mask.words, **words)
