"""The rows of bench_attention_dot and bench_attention_additive in PyTorch."""
import torch
import torch.nn.functional as F
from torch import nn

# The same numbers as in the benchmark programs.
DOT = {"dot_causal_1024": (4, 12, 1024, 64, True, False), "dot_causal_4096": (1, 12, 4096, 64, True, False),
       "dot_lengths_128": (32, 8, 128, 64, False, False), "dot_causal_1024_split": (4, 12, 1024, 64, True, True),
       "dot_lengths_128_split": (32, 8, 128, 64, False, True)}
ADDITIVE = {"additive_256": (8, 256, 256, 256), "additive_512": (4, 512, 512, 256), "additive_32": (64, 32, 32, 256),
            "additive_step": (128, 1, 10, 256)}
ROWS = DOT | ADDITIVE


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
    function, inputs, parameters = dot(*DOT[row]) if row in DOT else additive(*ADDITIVE[row])
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
