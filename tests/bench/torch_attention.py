"""The rows of bench_attention_dot and bench_attention_additive in PyTorch."""
import math

import torch
import torch.nn.functional as F
from torch import nn

# The same numbers as in the benchmark programs.
DOT = {"dot_causal_1024": (4, 12, 1024, 64, True, False), "dot_causal_4096": (1, 12, 4096, 64, True, False),
       "dot_lengths_128": (32, 8, 128, 64, False, False), "dot_causal_1024_split": (4, 12, 1024, 64, True, True),
       "dot_lengths_128_split": (32, 8, 128, 64, False, True)}
MODIFIED = {f"dot_{name}_{length}": (items, 12, length, 64, name)
            for name in ("soft_cap", "alibi", "t5") for length, items in ((1024, 4), (4096, 1))}
CAUSAL_LENGTHS = {"dot_causal_lengths_368": (32, 8, 368, 64)}
ADDITIVE = {"additive_256": (8, 256, 256, 256), "additive_512": (4, 512, 512, 256), "additive_32": (64, 32, 32, 256),
            "additive_step": (128, 1, 10, 256)}
ROWS = DOT | MODIFIED | CAUSAL_LENGTHS | ADDITIVE


def lengths(items, keys):
    return torch.tensor([1 + (7919 * b + 13) % keys for b in range(items)])


def dot(items, heads, length, size, causal, split):
    """Inputs lie in memory as (items, heads, length, size); if split, as (items, length, heads, size)."""
    shape = (items, length, heads, size) if split else (items, heads, length, size)
    inputs = [torch.randn(shape, requires_grad=True) for _ in range(3)]
    seen = None if causal else (torch.arange(length) < lengths(items, length)[:, None])[:, None, None, :]

    def function(*inputs):
        query, key, value = (x.transpose(1, 2) for x in inputs) if split else inputs
        return F.scaled_dot_product_attention(query, key, value, attn_mask=seen, is_causal=causal)
    return function, inputs, []


def alibi(heads, position):
    slopes = [2 ** (-8 * (h + 1) / 8) for h in range(8)] + [2 ** (-8 * (h + 0.5) / 8) for h in range(heads - 8)]
    return -torch.tensor(slopes)[:, None, None] * position.abs()


def t5_bucket(position):
    """32 buckets for keys that are not ahead: 16 of a position each, 16 by the logarithm up to 128."""
    distance = (-position).clamp(min=0)
    far = 16 + (torch.log(distance.clamp(min=1) / 16) / math.log(128 / 16) * 16).long()
    return torch.where(distance < 16, distance, far.clamp(max=31))


def modified(items, heads, length, size, name, is_plain):
    """Causal attention with a change of its scores; if plain by its definition, else by PyTorch's fused attention where
    that takes the change, as a matrix of biases."""
    inputs = [torch.randn(items, heads, length, size, requires_grad=True) for _ in range(3)]
    position = torch.arange(length) - torch.arange(length)[:, None]
    hidden, bucket, slopes = position > 0, t5_bucket(position), alibi(12, position)
    weight = torch.zeros(32, heads, requires_grad=True)

    def bias():
        return slopes if name == "alibi" else F.embedding(bucket, weight).permute(2, 0, 1)

    def by_definition(query, key, value):
        scores = query @ key.transpose(-2, -1) * size ** -0.5
        scores = 50 * torch.tanh(scores / 50) if name == "soft_cap" else scores + bias()
        return torch.softmax(scores.masked_fill(hidden, -math.inf), -1) @ value

    def fused(query, key, value):
        biases = bias().masked_fill(hidden, -math.inf).unsqueeze(0)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=biases)
    return by_definition if is_plain or name == "soft_cap" else fused, inputs, [weight] if name == "t5" else []


def causal_lengths(items, heads, length, size):
    inputs = [torch.randn(items, heads, length, size, requires_grad=True) for _ in range(3)]
    seen = (torch.arange(length) < lengths(items, length)[:, None])[:, None, None, :]
    seen = seen & (torch.arange(length) <= torch.arange(length)[:, None])
    return lambda *inputs: F.scaled_dot_product_attention(*inputs, attn_mask=seen), inputs, []


class Additive(nn.Module):
    """w_v^T tanh(W_q q + W_k k), masked softmax, weighted sum."""

    def __init__(self, size, hidden):
        super().__init__()
        self.query = nn.Linear(size, hidden, bias=False)
        self.key = nn.Linear(size, hidden, bias=False)
        self.value = nn.Linear(hidden, 1, bias=False)

    def forward(self, query, key, value, seen):
        features = torch.tanh(self.query(query).unsqueeze(2) + self.key(key).unsqueeze(1))
        scores = self.value(features).squeeze(-1).masked_fill(~seen, -1e6)
        return torch.bmm(torch.softmax(scores, -1), value)


def additive(items, queries, keys, hidden):
    module = Additive(hidden, hidden)
    inputs = [torch.randn(items, n, hidden, requires_grad=True) for n in (queries, keys, keys)]
    seen = (torch.arange(keys) < lengths(items, keys)[:, None])[:, None, :]
    return lambda *x: module(*x, seen), inputs, list(module.parameters())


def make(row, phase, compiled, is_plain):
    if row in MODIFIED:
        function, inputs, parameters = modified(*MODIFIED[row], is_plain)
    else:
        kind, sizes = next((kind, rows[row]) for kind, rows in
                           ((dot, DOT), (causal_lengths, CAUSAL_LENGTHS), (additive, ADDITIVE)) if row in rows)
        function, inputs, parameters = kind(*sizes)
    function = compiled(function)
    gradient = torch.randn_like(function(*inputs))

    def forward():
        with torch.no_grad():
            function(*inputs)

    def forward_and_backward():
        for leaf in inputs + parameters:
            leaf.grad = None
        function(*inputs).backward(gradient)
    return {"fwd": forward, "fwd_bwd": forward_and_backward}[phase]
