"""Cases of a decoder-only language model, written out by nanoGPT's names."""
import torch
from torch import nn
from torch.nn import functional as F

from attention import attend
from cases import family, integers
from heads import alibi, rotate, sinusoidal

add = family("gpt")
VOCABULARY, CONTEXT, SIZE, LAYERS, HEADS = 11, 6, 8, 2, 2


class Norm(nn.Module):
    """Layer norm whose bias may be missing."""
    def __init__(self, size, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.bias = nn.Parameter(torch.empty(size)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias)


class Attention(nn.Module):
    def __init__(self, size, heads, bias, groups, positions):
        super().__init__()
        self.size, self.heads, self.groups, self.positions = size, heads, groups, positions
        self.parts = [size, size // heads * groups, size // heads * groups]
        self.c_attn, self.c_proj = nn.Linear(size, sum(self.parts), bias), nn.Linear(size, size, bias)

    def forward(self, x):
        split = lambda part, count: part.unflatten(-1, (count, self.size // self.heads)).transpose(1, 2)
        q, k, v = self.c_attn(x).split(self.parts, -1)
        q, k, v = split(q, self.heads), split(k, self.groups), split(v, self.groups)
        bias = None
        if self.positions == "rotary":
            q, k = rotate(q), rotate(k)
        elif self.positions == "alibi":
            bias = alibi(self.heads, x.shape[1], x.dtype)
        y = attend(q, k, v, causal=True, relative_bias=bias)["y"]
        return self.c_proj(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, size, bias, kind):
        super().__init__()
        inner = 8 * size // 3 if kind == "swiglu" else 4 * size
        self.c_fc, self.c_proj = nn.Linear(size, inner, bias), nn.Linear(inner, size, bias)
        self.c_gated = nn.Linear(size, inner, bias) if kind == "swiglu" else None
        self.activation = {"swiglu": F.silu, "gelu": F.gelu, "relu": F.relu}[kind]

    def forward(self, x):
        y = self.activation(self.c_fc(x))
        return self.c_proj(y * self.c_gated(x) if self.c_gated else y)


class Block(nn.Module):
    def __init__(self, size, heads, bias, groups, positions, kind):
        super().__init__()
        self.ln_1, self.attn = Norm(size, bias), Attention(size, heads, bias, groups, positions)
        self.ln_2, self.mlp = Norm(size, bias), FeedForward(size, bias, kind)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary=VOCABULARY, context=CONTEXT, size=SIZE, layers=LAYERS, heads=HEADS, bias=True,
                 groups=HEADS, positions="learned", kind="gelu"):
        super().__init__()
        parts = {"wte": nn.Embedding(vocabulary, size)}
        if positions == "learned":
            parts["wpe"] = nn.Embedding(context, size)
        parts["h"] = nn.ModuleList(Block(size, heads, bias, groups, positions, kind) for _ in range(layers))
        parts["ln_f"] = Norm(size, bias)
        self.transformer, self.size, self.positions = nn.ModuleDict(parts), size, positions

    def forward(self, tokens):
        parts = self.transformer
        x = parts["wte"](tokens)
        if self.positions == "learned":
            x = x + parts["wpe"].weight[:tokens.shape[1]]
        elif self.positions == "sinusoidal":
            x = x * self.size ** 0.5 + sinusoidal(0, tokens.shape[1], self.size, x.dtype)
        for block in parts["h"]:
            x = block(x)
        return F.linear(parts["ln_f"](x), parts["wte"].weight)  # the head's weights are the embedding's


tokens = {"tokens": integers(0, VOCABULARY, 2, CONTEXT - 1)}
add("gpt", GPT(), **tokens)
add("gpt_no_bias", GPT(bias=False), **tokens)
add("gpt_grouped", GPT(groups=1), **tokens)
add("gpt_swiglu", GPT(kind="swiglu"), **tokens)
for positions in ("sinusoidal", "rotary", "alibi"):
    add(f"gpt_{positions}", GPT(positions=positions), **tokens)
