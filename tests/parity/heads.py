"""Cases of multi-head attention and of positions. What PyTorch has no module for is written out."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from attention import Additive, attend, dot, lengths, masked_softmax, random_seen, seen_keys, three
from cases import family, normal

# --- multi_head.safetensors ---
add = family("multi_head")
HEADS = 4
one, three_sizes = {"x": normal(2, 5, 8)}, {"q": normal(2, 4, 8), "k": normal(2, 5, 6), "v": normal(2, 5, 3)}


def torch_heads(module, q, k, v, seen=None, **masks):
    """PyTorch's module, whose masks say True to what is not seen."""
    if seen is not None:
        masks["key_padding_mask"] = ~seen
    y, weights = module(q, k, v, need_weights=True, average_attn_weights=False, **masks)
    return {"y": y, "weights": weights.detach()}


def self_attention(module, x, **masks):
    return torch_heads(module, x, x, x, **masks)


def padded(module, x, valid_lengths):
    return self_attention(module, x, seen=torch.arange(x.shape[1]) < valid_lengths[:, None])


def causal(module, x, **masks):
    return self_attention(module, x, attn_mask=torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1), **masks)


def causal_padded(module, x, valid_lengths):
    return causal(module, x, seen=torch.arange(x.shape[1]) < valid_lengths[:, None])


def heads(bias=True, **sizes):
    return nn.MultiheadAttention(8, HEADS, bias=bias, batch_first=True, **sizes)


add("packed", heads(), self_attention, **one)
add("packed_no_bias", heads(bias=False), self_attention, **one)
add("cross", heads(), torch_heads, q=normal(2, 4, 8), k=normal(2, 5, 8), v=normal(2, 5, 8))
add("sizes", heads(kdim=6, vdim=3), torch_heads, **three_sizes)
add("sizes_no_bias", heads(bias=False, kdim=6, vdim=3), torch_heads, **three_sizes)
add("padding", heads(), padded, {"valid_lengths": lengths}, **one)
add("causal", heads(), causal, **one)
add("causal_padding", heads(), causal_padded, {"valid_lengths": lengths}, **one)
add("bias", heads(), lambda module, x, bias: self_attention(module, x, attn_mask=bias), x=normal(2, 5, 8),
    bias=normal(5, 5))


def scaled(frequencies, factor, low=0, high=0, context=0):
    """LLaMA 3.1's frequencies, by their wavelengths in positions; without a context all are divided."""
    if not context:
        return frequencies / factor
    wavelength = 2 * torch.pi / frequencies
    smooth = (context / wavelength - low) / (high - low)
    between = (1 - smooth) * frequencies / factor + smooth * frequencies
    return torch.where(wavelength > context / low if low else torch.zeros_like(wavelength, dtype=torch.bool),
                       frequencies / factor, torch.where(wavelength < context / high, frequencies, between))


def rotate(x, offset=0, halves=False, base=10000, scaling=None):
    """Rotary positions: the pairs (2j, 2j + 1), or (j, j + size / 2), turned by position / base^(2j / size)."""
    size = x.shape[-1]
    position = torch.arange(offset, offset + x.shape[-2], dtype=torch.float64)
    frequencies = base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = position[:, None] * (scaled(frequencies, *scaling) if scaling else frequencies)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, -1) if halves else (x[..., 0::2], x[..., 1::2])
    turned = [a * cos - b * sin, a * sin + b * cos]
    return torch.cat(turned, -1) if halves else torch.stack(turned, -1).flatten(-2)


class Heads(nn.Module):
    """Multi-head attention written out, by the names of PyTorch's module: fewer heads of keys and values, other sizes,
    another scoring function, rotary positions, a head mask."""
    def __init__(self, size=8, groups=HEADS, value_hidden=8, output=8, scoring=None, rotary=False):
        super().__init__()
        self.parts = [size, size // HEADS * groups, value_hidden // HEADS * groups]
        self.in_proj_weight = nn.Parameter(torch.empty(sum(self.parts), size))
        self.in_proj_bias = nn.Parameter(torch.empty(sum(self.parts)))
        self.out_proj = nn.Linear(value_hidden, output)
        self.groups, self.rotary = groups, rotary
        if scoring:
            self.attention = scoring

    def forward(self, x, head_mask=None, **mask):
        split = lambda part, count: part.unflatten(-1, (count, part.shape[-1] // count)).transpose(1, 2)
        q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).split(self.parts, -1)
        q, k, v = split(q, HEADS), split(k, self.groups), split(v, self.groups)
        if self.rotary:
            q, k = rotate(q), rotate(k)
        if hasattr(self, "attention"):
            scores = self.attention(q, k)
            weights = masked_softmax(scores, seen_keys(scores, **mask))
            y = weights @ v
        else:
            y, weights = attend(q, k, v, **mask).values()
        if head_mask is not None:
            y = y * head_mask[:, None, None]
        return {"y": self.out_proj(y.transpose(1, 2).flatten(2)), "weights": weights.detach()}


named = lambda module, **inputs: module(**inputs)
add("grouped", Heads(groups=2), named, {"valid_lengths": lengths}, **one)
add("multi_query", Heads(groups=1), named, **one)
add("value_sizes", Heads(value_hidden=12, output=5), named, **one)
add("rotary", Heads(rotary=True), lambda module, x: module(x, causal=True), **one)
add("additive_heads", Heads(scoring=Additive(2, 2, 3)), named, {"valid_lengths": lengths}, **one)
add("head_mask", Heads(), named, x=normal(2, 5, 8), head_mask=normal(HEADS))


def alibi_slopes(count):
    """Press et al.'s: powers of 2^(−8 / count); for other counts than powers of 2 some of twice as many."""
    power = 2 ** int(math.log2(count))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return slopes if power == count else slopes + alibi_slopes(2 * power)[0::2][:count - power]


def alibi(heads, reach, dtype):
    """A relative_bias (heads, 1, 2 reach + 1)."""
    slopes = torch.tensor(alibi_slopes(heads), dtype=torch.float64)[:, None, None]
    return (-slopes * torch.arange(-reach, reach + 1).abs()).to(dtype)


# --- positions.safetensors ---
add = family("positions")


def sinusoidal(offset, length, size, dtype):
    """sin(i / 10000^(2j/size)) in column 2j, cos in column 2j + 1."""
    i, column = torch.arange(offset, offset + length, dtype=torch.float64)[:, None], torch.arange(size)
    angle = i / 10000 ** ((column - column % 2).to(torch.float64) / size)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).to(dtype)


class Learned(nn.Module):
    def __init__(self, count, size):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, size))

    def forward(self, x):
        return x + self.weight[1:1 + x.shape[1]]


add("sinusoidal", None, lambda module, x: x + sinusoidal(0, 5, 8, x.dtype), x=normal(2, 5, 8))
add("sinusoidal_odd", None, lambda module, x: x + sinusoidal(300, 5, 7, x.dtype), x=normal(2, 5, 7))
add("learned", Learned(7, 4), x=normal(2, 5, 4))
add("rotate", None, lambda module, x: rotate(x, 3), x=normal(2, 4, 5, 6))
add("rotate_halves", None, lambda module, x: rotate(x, 3, halves=True), x=normal(2, 4, 5, 6))
for count in (4, 6):
    add(f"alibi_{count}", None, lambda module, q, k, v: attend(q, k, v, relative_bias=alibi(q.shape[1], 4, q.dtype)),
        q=normal(2, count, 4, 6), k=normal(2, count, 5, 6), v=normal(2, count, 5, 3))


class RelativeBias(nn.Module):
    def __init__(self, count, reach):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(count, 2 * reach + 1))

    def forward(self, q, k, v):
        return attend(q, k, v, relative_bias=self.weight[:, None])


add("relative_bias", RelativeBias(4, 2), q=normal(2, 4, 4, 6), k=normal(2, 4, 5, 6), v=normal(2, 4, 5, 3))
