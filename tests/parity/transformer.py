"""Cases of the blocks of Transformers, by PyTorch's modules."""
import torch
from torch import nn
from torch.nn import functional as F

from attention import lengths
from cases import family, normal

add = family("transformer")
SIZES = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0, "batch_first": True}
source, target = {"x": normal(2, 5, 8)}, {"x": normal(2, 4, 8), "memory": normal(2, 5, 8)}


def unseen(x, valid_lengths):
    """PyTorch's padding mask: True is not seen."""
    return None if valid_lengths is None else torch.arange(x.shape[1]) >= valid_lengths[:, None]


def future(x):
    """PyTorch's causal mask."""
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)


def encode(module, x, valid_lengths=None):
    return module(x, src_key_padding_mask=unseen(x, valid_lengths))


def decode(module, x, memory, valid_lengths=None):
    return module(x, memory, tgt_mask=future(x), memory_key_padding_mask=unseen(memory, valid_lengths))


def transform(module, source, target, valid_lengths, target_lengths):
    padding = unseen(source, valid_lengths)
    return module(source, target, tgt_mask=future(target), src_key_padding_mask=padding,
                  tgt_key_padding_mask=unseen(target, target_lengths), memory_key_padding_mask=padding)


class SwiGLU(nn.Module):
    def __init__(self, size, inner):
        super().__init__()
        self.linear1, self.linear3 = nn.Linear(size, inner), nn.Linear(size, inner)
        self.linear2 = nn.Linear(inner, size)

    def forward(self, x):
        return self.linear2(F.silu(self.linear1(x)) * self.linear3(x))


add("feed_forward", nn.ModuleDict({"linear1": nn.Linear(5, 8), "linear2": nn.Linear(8, 3)}),
    lambda module, x: module["linear2"](F.relu(module["linear1"](x))), x=normal(2, 3, 5))
add("swiglu", SwiGLU(5, 8), x=normal(2, 3, 5))
add("add_norm", nn.LayerNorm(6), lambda module, x, y: module(x + y), x=normal(2, 3, 6), y=normal(2, 3, 6))

for order in ("post", "pre"):
    for activation in ("relu", "gelu"):
        kind = {"activation": activation, "norm_first": order == "pre"}
        add(f"encoder_layer_{order}_{activation}", nn.TransformerEncoderLayer(**SIZES, **kind), encode,
            {"valid_lengths": lengths}, **source)
        add(f"decoder_layer_{order}_{activation}", nn.TransformerDecoderLayer(**SIZES, **kind), decode,
            {"valid_lengths": lengths}, **target)


def no_bias(layer):
    """As Dive into Deep Learning has it: no bias in the attention's projections."""
    layer.self_attn = nn.MultiheadAttention(8, 2, bias=False, batch_first=True)
    return layer


add("encoder_layer_no_bias", no_bias(nn.TransformerEncoderLayer(**SIZES)), encode, {"valid_lengths": lengths}, **source)
add("encoder_layer_causal", nn.TransformerEncoderLayer(**SIZES), lambda module, x: module(x, src_mask=future(x)),
    **source)
for order in ("post", "pre"):
    sizes = {**SIZES, "norm_first": order == "pre"}
    encoder, decoder = nn.TransformerEncoderLayer(**sizes), nn.TransformerDecoderLayer(**sizes)
    add(f"encoder_{order}", nn.TransformerEncoder(encoder, 2, nn.LayerNorm(8)), encode, {"valid_lengths": lengths},
        **source)
    add(f"decoder_{order}", nn.TransformerDecoder(decoder, 2, nn.LayerNorm(8)), decode, {"valid_lengths": lengths},
        **target)
add("encoder_no_norm", nn.TransformerEncoder(nn.TransformerEncoderLayer(**SIZES), 2), encode, **source)
for order in ("post", "pre"):
    add(f"transformer_{order}", nn.Transformer(num_encoder_layers=2, num_decoder_layers=2, norm_first=order == "pre",
                                               **SIZES), transform,
        {"valid_lengths": lengths, "target_lengths": [4, 2]}, source=normal(2, 5, 8), target=normal(2, 4, 8))
