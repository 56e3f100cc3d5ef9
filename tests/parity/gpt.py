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
    def __init__(self, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(SIZE))
        self.bias = nn.Parameter(torch.empty(SIZE)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, (SIZE,), self.weight, self.bias)


class Attention(nn.Module):
    def __init__(self, bias, groups, positions):
        super().__init__()
        self.parts = [SIZE, SIZE // HEADS * groups, SIZE // HEADS * groups]
        self.groups, self.positions = groups, positions
        self.c_attn, self.c_proj = nn.Linear(SIZE, sum(self.parts), bias), nn.Linear(SIZE, SIZE, bias)

    def forward(self, x):
        split = lambda part, count: part.unflatten(-1, (count, SIZE // HEADS)).transpose(1, 2)
        q, k, v = self.c_attn(x).split(self.parts, -1)
        q, k, v = split(q, HEADS), split(k, self.groups), split(v, self.groups)
        bias = None
        if self.positions == "rotary":
            q, k = rotate(q), rotate(k)
        elif self.positions == "alibi":
            bias = alibi(HEADS, CONTEXT, x.dtype)
        y = attend(q, k, v, causal=True, relative_bias=bias)["y"]
        return self.c_proj(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, bias, swiglu):
        super().__init__()
        inner = 8 * SIZE // 3 if swiglu else 4 * SIZE
        self.c_fc, self.c_proj = nn.Linear(SIZE, inner, bias), nn.Linear(inner, SIZE, bias)
        self.c_gated = nn.Linear(SIZE, inner, bias) if swiglu else None

    def forward(self, x):
        return self.c_proj(F.silu(self.c_fc(x)) * self.c_gated(x) if self.c_gated else F.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, bias, groups, positions, swiglu):
        super().__init__()
        self.ln_1, self.attn = Norm(bias), Attention(bias, groups, positions)
        self.ln_2, self.mlp = Norm(bias), FeedForward(bias, swiglu)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, bias=True, groups=HEADS, positions="learned", swiglu=False):
        super().__init__()
        parts = {"wte": nn.Embedding(VOCABULARY, SIZE)}
        if positions == "learned":
            parts["wpe"] = nn.Embedding(CONTEXT, SIZE)
        parts["h"] = nn.ModuleList(Block(bias, groups, positions, swiglu) for _ in range(LAYERS))
        parts["ln_f"] = Norm(bias)
        self.transformer, self.positions = nn.ModuleDict(parts), positions

    def forward(self, tokens):
        parts = self.transformer
        x = parts["wte"](tokens)
        if self.positions == "learned":
            x = x + parts["wpe"].weight[:tokens.shape[1]]
        elif self.positions == "sinusoidal":
            x = x * SIZE ** 0.5 + sinusoidal(0, tokens.shape[1], SIZE, x.dtype)
        for block in parts["h"]:
            x = block(x)
        return F.linear(parts["ln_f"](x), parts["wte"].weight)  # the head's weights are the embedding's


tokens = {"tokens": integers(0, VOCABULARY, 2, CONTEXT - 1)}
add("gpt", GPT(), **tokens)
add("gpt_no_bias", GPT(bias=False), **tokens)
add("gpt_grouped", GPT(groups=1), **tokens)
add("gpt_swiglu", GPT(swiglu=True), **tokens)
for positions in ("sinusoidal", "rotary", "alibi"):
    add(f"gpt_{positions}", GPT(positions=positions), **tokens)
