"""Masks and normalisers: how each is drawn, and its formula."""
import math

import torch
from torch.nn import functional as F

from attention import by_relative_position, hard, masked_softmax, normalize, seen_keys
from draw import moderate, positive
from kinks import Rejected
from random_ops import draws, op


class Mask:
    """What a step says of its mask, the numbers of its tensors (lengths, seen, bias, relative bias) and the formula."""
    def __init__(self, words=None, inputs=(None,) * 4):
        self.words, self.inputs = words or {}, list(inputs)

    def biased(self, scores, lengths, seen, bias, relative_bias):
        """Scores with their biases, and which are seen."""
        words = {key: self.words[key] for key in ("causal", "window", "offset") if key in self.words}
        if lengths is not None:
            lengths = lengths.to(torch.float64)
        if seen is not None:
            seen = seen.expand(scores.shape)
        allowed = seen_keys(scores, lengths, seen=seen, **words)
        if bias is not None:
            allowed, scores = allowed & (bias > -math.inf), scores + bias
        if relative_bias is not None:
            table = relative_bias if relative_bias.dim() > 1 else relative_bias[None]
            by_place = by_relative_position(table, *scores.shape[-2:], words.get("offset", 0))
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
    """Of a tensor that broadcasts to scores (B, heads, Q, K) or (B, Q, K), with that last axis. Three axes are not
    taken for heads unless the first is 1."""
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
def by_relative_position_(p):
    queries, keys, offset, by_query = p.between(1, 5), p.between(1, 6), p.between(-2, 3), p.chance(0.5)
    fits = lambda t: t.shape[-1] % 2 == 1 and (not by_query or t.dim() > 1 and t.shape[-2] == queries)
    shape = [*p.shape(0, 2), *([queries] if by_query else []), 2 * p.between(0, 4) + 1]
    x = p.find(lambda t: t.dim() and t.dtype == torch.float64 and fits(t)) if p.chance(0.5) else None
    x = p.leaf(shape) if x is None else x

    def function(x):
        x = x if by_query else x.unsqueeze(-2)
        return by_relative_position(x, queries, keys, offset)
    p.step("by_relative_position", [x], function, queries=queries, keys=keys, offset=offset, by_query=by_query)


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
    @draws(f"masked_{name}")
    def draw(p):
        x = p.some(3, 4, domain=lambda t: moderate(t) and (name != "sum" or positive(t)))
        mask = draw_mask(p, list(p.values[x].shape), everything=name != "sum")
        if name == "softmax" and p.chance(0.15):
            mask.words["million"] = True
        if name == "sum":
            mask.inputs[2:] = [None, None]  # sums near 0
        p.step(f"masked_{name}", [x, *mask.inputs], lambda x, *fields: weigh(name, mask, x, *fields), jumps=True,
               cancels=True, normalizer=name, **mask.words)


for name in ("softmax", "sum", "none", "hard", "uniform"):
    draw_normalizer(name)
