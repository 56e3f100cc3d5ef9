"""Cases of a decoder-only language model, written out by nanoGPT's names."""
import torch
from torch import nn
from torch.nn import functional as F

from attention import attend
from cases import family, integers
from heads import alibi, rotate, sinusoidal

add = family("gpt")
VOCABULARY, CONTEXT, SIZE, LAYERS, HEADS = 11, 6, 8, 2, 2
RMS_EPSILON = 1e-6
ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu,
               "gelu_tanh": lambda x: F.gelu(x, approximate="tanh")}


class Norm(nn.Module):
    """Layer norm whose bias may be missing, or RMSNorm."""
    def __init__(self, size, bias, rms=False):
        super().__init__()
        self.weight, self.rms = nn.Parameter(torch.empty(size)), rms
        self.bias = nn.Parameter(torch.empty(size)) if bias and not rms else None

    def forward(self, x):
        if self.rms:
            return x * (x.pow(2).mean(-1, keepdim=True) + RMS_EPSILON).rsqrt() * self.weight
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias)


class Attention(nn.Module):
    def __init__(self, size, heads, bias, groups, positions, window, head_size, norm_heads, **rotary):
        super().__init__()
        self.size, self.heads, self.groups, self.positions = head_size or size // heads, heads, groups, positions
        self.mask, self.rotary = {"window": window} if window else {}, rotary
        self.parts = [self.size * heads, self.size * groups, self.size * groups]
        self.c_attn, self.c_proj = nn.Linear(size, sum(self.parts), bias), nn.Linear(self.parts[0], size, bias)
        if norm_heads:
            self.q_norm, self.k_norm = Norm(self.size, False, rms=True), Norm(self.size, False, rms=True)
        self.norm_heads = norm_heads

    def forward(self, x):
        split = lambda part, count: part.unflatten(-1, (count, self.size)).transpose(1, 2)
        q, k, v = self.c_attn(x).split(self.parts, -1)
        q, k, v = split(q, self.heads), split(k, self.groups), split(v, self.groups)
        if self.norm_heads:
            q, k = self.q_norm(q), self.k_norm(k)
        bias = None
        if self.positions == "rotary":
            q, k = rotate(q, **self.rotary), rotate(k, **self.rotary)
        elif self.positions == "alibi":
            bias = alibi(self.heads, x.shape[1], x.dtype)
        y = attend(q, k, v, causal=True, relative_bias=bias, **self.mask)["y"]
        return self.c_proj(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, size, bias, kind, inner):
        super().__init__()
        inner = inner or (8 * size // 3 if kind == "swiglu" else 4 * size)
        self.c_fc, self.c_proj = nn.Linear(size, inner, bias), nn.Linear(inner, size, bias)
        self.c_gated = nn.Linear(size, inner, bias) if kind == "swiglu" else None
        self.activation = ACTIVATIONS[kind]

    def forward(self, x):
        y = self.activation(self.c_fc(x))
        return self.c_proj(y * self.c_gated(x) if self.c_gated else y)


class Block(nn.Module):
    def __init__(self, size, heads, bias, groups, positions, kind, rms, inner, **attention):
        super().__init__()
        self.ln_1, self.attn = Norm(size, bias, rms), Attention(size, heads, bias, groups, positions, **attention)
        self.ln_2, self.mlp = Norm(size, bias, rms), FeedForward(size, bias, kind, inner)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary=VOCABULARY, context=CONTEXT, size=SIZE, layers=LAYERS, heads=HEADS, bias=True,
                 groups=HEADS, positions="learned", kind="gelu", rms=False, inner=0, window=0, halves=False,
                 base=10000, untied=False, head_size=0, norm_heads=False, scaling=None):
        super().__init__()
        parts = {"wte": nn.Embedding(vocabulary, size)}
        if positions == "learned":
            parts["wpe"] = nn.Embedding(context, size)
        parts["h"] = nn.ModuleList(Block(size, heads, bias, groups, positions, kind, rms, inner, window=window,
                                         halves=halves, base=base, head_size=head_size, norm_heads=norm_heads,
                                         scaling=scaling) for _ in range(layers))
        parts["ln_f"] = Norm(size, bias, rms)
        self.transformer, self.size, self.positions = nn.ModuleDict(parts), size, positions
        self.lm_head = nn.Linear(size, vocabulary, False) if untied else None

    def forward(self, tokens):
        parts = self.transformer
        x = parts["wte"](tokens)
        if self.positions == "learned":
            x = x + parts["wpe"].weight[:tokens.shape[1]]
        elif self.positions == "sinusoidal":
            x = x * self.size ** 0.5 + sinusoidal(0, tokens.shape[1], self.size, x.dtype)
        for block in parts["h"]:
            x = block(x)
        head = self.lm_head or parts["wte"]  # whose weights are the embedding's, or its own
        return F.linear(parts["ln_f"](x), head.weight)


tokens = {"tokens": integers(0, VOCABULARY, 2, CONTEXT - 1)}
add("gpt", GPT(), **tokens)
add("gpt_no_bias", GPT(bias=False), **tokens)
add("gpt_grouped", GPT(groups=1), **tokens)
add("gpt_swiglu", GPT(kind="swiglu"), **tokens)
add("gpt_gelu_tanh", GPT(kind="gelu_tanh", window=3), **tokens)
add("gpt_llama", GPT(bias=False, kind="swiglu", groups=1, positions="rotary", rms=True, inner=12, halves=True, base=100,
                     untied=True), **tokens)
add("gpt_qwen", GPT(bias=False, kind="swiglu", groups=1, positions="rotary", rms=True, inner=12, halves=True, base=100,
                    head_size=6, norm_heads=True), **tokens)
add("gpt_scaled", GPT(positions="rotary", halves=True, base=1000, head_size=10, scaling=(8, 1, 4, 64)), **tokens)
add("gpt_interpolated", GPT(positions="rotary", scaling=(4,)), **tokens)
for positions in ("sinusoidal", "rotary", "alibi"):
    add(f"gpt_{positions}", GPT(positions=positions), **tokens)
