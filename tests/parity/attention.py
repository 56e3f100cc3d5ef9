"""Cases of attention pooling with its masks and normalisers, and of the scoring functions, written out."""
import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from cases import family, normal


def seen_keys(scores, valid_lengths=None, causal=False, window=0, offset=0, seen=None):
    """Which keys (…, Q, K) each query sees, as rapt/mask.h defines it."""
    allowed = torch.ones(scores.shape, dtype=torch.bool)
    i, j = torch.arange(scores.shape[-2])[:, None] + offset, torch.arange(scores.shape[-1])
    if causal:
        allowed &= j <= i
    if window:
        allowed &= (i - j).abs() < window
    if valid_lengths is not None:
        allowed &= j < valid_lengths.reshape(valid_lengths.shape[0], *[1] * (scores.dim() - 3), -1, 1)
    return allowed if seen is None else allowed & seen


def places(size, queries, keys, offset=0):
    """(Q, K): R + clamp(j − i − offset, −R, R), where size is 2R + 1."""
    position = torch.arange(keys) - torch.arange(queries)[:, None] - offset
    return size // 2 + position.clamp(-(size // 2), size // 2)


def by_relative_position(table, queries, keys, offset=0):
    """(…, Q or 1, 2R + 1) → (…, Q, K): of each query's row the element for the relative position of the key."""
    index = places(table.shape[-1], queries, keys, offset)
    return table.expand(*table.shape[:-2], queries, -1).gather(-1, index.expand(*table.shape[:-2], -1, -1))


def masked_softmax(scores, seen):
    """Weights, zeros where a query sees nothing."""
    return F.softmax(scores.masked_fill(~seen, torch.finfo(scores.dtype).min), -1) * seen


def attend(q, k, v, bias=None, relative_bias=None, **mask):
    """Scaled dot-product attention and its weights; fewer heads of keys than of queries are shared by groups."""
    if q.dim() == 4:
        k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    seen = seen_keys(scores, **mask)
    if bias is not None:
        seen, scores = seen & (bias > -math.inf), scores + bias
    if relative_bias is not None:
        scores = scores + by_relative_position(relative_bias, *scores.shape[-2:], mask.get("offset", 0))
    weights = masked_softmax(scores, seen)
    if hasattr(F, "scaled_dot_product_attention") and bias is None and relative_bias is None and seen.any(-1).all():
        torch.testing.assert_close(weights @ v, F.scaled_dot_product_attention(q, k, v, seen))
    return {"y": weights @ v, "weights": weights.detach()}


# --- attention.safetensors ---
add = family("attention")
three = {"q": normal(2, 4, 6), "k": normal(2, 5, 6), "v": normal(2, 5, 3)}
heads = {"q": normal(2, 4, 4, 6), "k": normal(2, 2, 5, 6), "v": normal(2, 2, 5, 3)}
lengths, lengths_per_query = [3, 5], [[3, 0, 5, 1], [0, 2, 2, 4]]


def random_seen(*shape):
    return lambda random: random.uniform(size=shape) < 0.6


def random_bias(*shape):
    """Some keys are hidden by −∞."""
    return lambda random: np.where(random.uniform(size=shape) < 0.2, -np.inf, random.normal(size=shape))


def add_pooling(name, inputs=three, constants={}, also={}, **fixed):
    add(name, None, lambda module, q, k, v, **mask: attend(q, k, v, **mask, **fixed), constants, **inputs, **also)


add_pooling("plain")
add_pooling("lengths", constants={"valid_lengths": lengths})
add_pooling("lengths_per_query", constants={"valid_lengths": lengths_per_query})
add_pooling("causal", causal=True)
add_pooling("causal_offset", causal=True, offset=1)
add_pooling("window", window=2)
add_pooling("causal_window_offset", causal=True, window=2, offset=1)
add_pooling("boolean", constants={"seen": random_seen(2, 4, 5)})
add_pooling("bias", also={"bias": random_bias(2, 4, 5)})
add_pooling("relative_bias", also={"relative_bias": normal(1, 5)}, offset=1)
add_pooling("heads", heads)
add_pooling("heads_lengths_causal", heads, {"valid_lengths": lengths}, causal=True)
add_pooling("heads_everything", heads, {"valid_lengths": lengths_per_query, "seen": random_seen(2, 1, 4, 5)},
            {"bias": normal(4, 4, 5), "relative_bias": normal(4, 4, 5)}, causal=True, window=4, offset=1)


def book_softmax(scores, valid_lengths):
    """Dive into Deep Learning's masked softmax: unseen keys score −10⁶."""
    return F.softmax(scores.masked_fill(~seen_keys(scores, valid_lengths), -1e6), -1)


add("book_softmax", None, lambda module, x, valid_lengths: book_softmax(x, valid_lengths),
    {"valid_lengths": lengths_per_query}, x=normal(2, 4, 5))
add("softmax", None, lambda module, x, valid_lengths: masked_softmax(x, seen_keys(x, valid_lengths)),
    {"valid_lengths": lengths_per_query}, x=normal(2, 4, 5))


def normalize(scores, seen):
    """a / Σ a, zeros where the sum is 0."""
    a = scores * seen
    total = a.sum(-1, keepdim=True)
    return torch.where(total == 0, torch.zeros_like(a), a / torch.where(total == 0, torch.ones_like(total), total))


add("sum", None, lambda module, x, valid_lengths: normalize(x.abs() + 0.1, seen_keys(x, valid_lengths)),
    {"valid_lengths": lengths_per_query}, x=normal(2, 4, 5))
add("uniform", None, lambda module, x, valid_lengths: normalize(torch.ones_like(x), seen_keys(x, valid_lengths)),
    constants={"valid_lengths": lengths_per_query, "x": normal(2, 4, 5)})


def hard(scores, seen):
    """1 at the largest score."""
    return F.one_hot(scores.masked_fill(~seen, -1e6).argmax(-1), scores.shape[-1]) * seen.to(scores.dtype)


add("hard", None, lambda module, x, valid_lengths: hard(x, seen_keys(x, valid_lengths)),
    constants={"valid_lengths": lengths_per_query, "x": normal(2, 4, 5)})
add("none", None, lambda module, x, valid_lengths: x * seen_keys(x, valid_lengths),
    {"valid_lengths": lengths_per_query}, x=normal(2, 4, 5))


class Additive(nn.Module):
    def __init__(self, query_size, key_size, hidden):
        super().__init__()
        self.W_q, self.W_k = nn.Linear(query_size, hidden, bias=False), nn.Linear(key_size, hidden, bias=False)
        self.w_v = nn.Linear(hidden, 1, bias=False)

    def forward(self, q, k):
        return self.w_v(torch.tanh(self.W_q(q).unsqueeze(-2) + self.W_k(k).unsqueeze(-3))).squeeze(-1)


def pool_additive(module, q, k, v, valid_lengths):
    weights = book_softmax(module(q, k), valid_lengths)
    return {"y": weights @ v, "weights": weights.detach()}


add("book_additive", Additive(3, 4, 7), pool_additive, {"valid_lengths": lengths_per_query},
    q=normal(2, 4, 3), k=normal(2, 5, 4), v=normal(2, 5, 3))
add("additive", Additive(3, 4, 7), pool_additive, {"valid_lengths": lengths},
    q=normal(2, 4, 3), k=normal(2, 5, 4), v=normal(2, 5, 3))

# --- scoring.safetensors ---
add = family("scoring")
same, other = {"q": normal(2, 4, 6), "k": normal(2, 5, 6)}, {"q": normal(2, 4, 3), "k": normal(2, 5, 4)}


class Parameter(nn.Module):
    """One parameter of that name."""
    def __init__(self, name, *shape):
        super().__init__()
        self.register_parameter(name, nn.Parameter(torch.empty(shape)))


def dot(q, k):
    return q @ k.transpose(-2, -1)


def distance(q, k):
    return (q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1).sqrt()


add("dot", None, lambda module, q, k: dot(q, k), **same)
add("scaled_dot", None, lambda module, q, k: dot(q, k) / math.sqrt(6), **same)
add("bilinear", Parameter("M", 3, 4), lambda module, q, k: dot(q @ module.M, k), **other)
add("padded_dot", None, lambda module, q, k: dot(F.pad(q, (0, 1)), k) / 2, **other)
add("additive", Additive(3, 4, 7), **other)
add("cosine", Parameter("temperature", 1),
    lambda module, q, k: F.cosine_similarity(q.unsqueeze(-2), k.unsqueeze(-3), -1) / module.temperature,
    weights={"temperature": [0.6]}, **same)
add("gaussian", Parameter("width", 1), lambda module, q, k: -distance(q, k).square() / (2 * module.width ** 2),
    weights={"width": [1.5]}, **same)
add("kernel_gaussian", Parameter("width", 1),
    lambda module, q, k: (-(distance(q, k) / module.width).square() / 2).exp(), weights={"width": [1.5]}, **same)
add("kernel_boxcar", None, lambda module, q, k: (distance(q, k) / 3 < 1).to(q.dtype), constants=same)
add("kernel_constant", None, lambda module, q, k: torch.ones(2, 4, 5, dtype=q.dtype), constants=same)
add("kernel_epanechnikov", Parameter("width", 1), lambda module, q, k: F.relu(1 - distance(q, k) / module.width),
    weights={"width": [4.0]}, **same)


class Relative(nn.Module):
    """Shaw's relative positions."""
    def __init__(self, size, value_size, reach):
        super().__init__()
        self.key_table = nn.Parameter(torch.empty(2 * reach + 1, size))
        self.value_table = nn.Parameter(torch.empty(2 * reach + 1, value_size))

    def forward(self, q, k, v, valid_lengths):
        queries, keys, size = q.shape[-2], k.shape[-2], q.shape[-1]
        place = places(len(self.key_table), queries, keys)
        scores = (dot(q, k) + (q.unsqueeze(-2) * self.key_table[place]).sum(-1)) / math.sqrt(size)
        weights = masked_softmax(scores, seen_keys(scores, valid_lengths))
        y = weights @ v + (weights.unsqueeze(-1) * self.value_table[place]).sum(-2)
        return {"y": y, "weights": weights.detach()}


add("relative", Relative(6, 3, 2), lambda module, **inputs: module(**inputs), {"valid_lengths": lengths_per_query},
    **three)


def regress(module, q, k, v, valid_lengths):
    """Nadaraya–Watson regression with a Gaussian kernel."""
    kernel = (-(distance(q, k) / module.width).square() / 2).exp()
    weights = normalize(kernel, seen_keys(kernel, valid_lengths))
    return {"y": weights @ v, "weights": weights.detach()}


add("kernel_regression", Parameter("width", 1), regress, {"valid_lengths": lengths_per_query}, {"width": [1.5]},
    **three)
