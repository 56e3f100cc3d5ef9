"""Blocks of Transformers, GPT, and Bahdanau's encoder and decoder: how each is drawn, and what it is in PyTorch: its
own module where it has one, else tests/parity's."""
import warnings

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import gpt as written
import seq2seq
from draw import moderate
from random_layers import weights_of
from random_masks import draw_mask
from random_ops import op

warnings.filterwarnings("ignore", message="enable_nested_tensor")
KINDS = tuple(written.ACTIVATIONS)


def without_values(make):
    """A module that is only asked for the names and shapes of its weights."""
    with torch.device("meta"):
        return make()


def add_module(p, name, module, inputs, forward, **words):
    """A step of a module whose weights are new values; forward gets a function that calls it, and the inputs."""
    shapes = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    named, weights = weights_of(p, shapes)

    def function(*tensors):
        given = dict(zip(shapes, tensors[len(inputs):]))
        with sdpa_kernel(SDPBackend.MATH):  # the way that has second derivatives
            return forward(lambda *args, **kwargs: functional_call(module, given, args, kwargs), *tensors[:len(inputs)])
    return p.step(name, [*inputs, *weights], function, cancels=True, **words, **named)


def draw_x(p):
    """(B, T, size)"""
    x = p.some(3, 3, domain=lambda t: moderate(t) and t.numel() > 0)
    batch, length, size = p.values[x].shape
    return x, batch, length, size


@op
def feed_forward(p):
    x, kind, bias = p.some(1, domain=moderate), p.one(KINDS), p.chance(0.7)
    size, inner, out = p.values[x].shape[-1], p.size(), p.size()
    names = ("linear1", "linear2", "linear3") if kind == "swiglu" else ("linear1", "linear2")
    shapes = {}
    for name in names:
        rows, columns = (out, inner) if name == "linear2" else (inner, size)
        shapes[name + ".weight"] = (rows, columns)
        if bias:
            shapes[name + ".bias"] = (rows,)
    words, weights = weights_of(p, shapes)
    activation = written.ACTIVATIONS[kind]

    def function(x, *weights):
        given = dict(zip(shapes, weights))
        apply = lambda name, x: F.linear(x, given[name + ".weight"], given.get(name + ".bias"))
        y = activation(apply("linear1", x))
        return apply("linear2", y * apply("linear3", x) if kind == "swiglu" else y)
    p.step("feed_forward", [x, *weights], function, cancels=True, in_size=size, inner=inner, out_size=out, kind=kind,
           bias=bias, **words)


@op
def add_norm(p):
    x, bias, norm_first = p.some(1, domain=lambda t: moderate(t) and t.shape[-1] > 2), p.chance(0.7), p.chance(0.5)
    size = p.values[x].shape[-1]
    words, weights = weights_of(p, {"weight": (size,), **({"bias": (size,)} if bias else {})})

    def function(x, factor, *weights):
        norm = lambda x: F.layer_norm(x, (size,), *weights)
        return x + norm(x) * factor if norm_first else norm(x + x * factor)
    p.step("add_norm", [x, p.shaped(list(p.values[x].shape), moderate), *weights], function, cancels=True, size=size,
           bias=bias, norm_first=norm_first, **words)


class Sizes:
    """What the layers of a Transformer share, and a step's words for it."""
    def __init__(self, p, size):
        self.heads = p.one([n for n in range(1, size + 1) if size % n == 0])
        self.words = {"size": size, "heads": self.heads, "inner": p.size(), "kind": p.one(["relu", "gelu"]),
                      "norm_first": p.chance(0.5), "bias": p.chance(0.7), "no_bias": p.chance(0.3),
                      "plain": p.chance(0.3)}

    def layer(self, kind):
        """PyTorch has biases everywhere or nowhere; its attention can be exchanged."""
        w = self.words
        layer = kind(w["size"], self.heads, w["inner"], 0.0, w["kind"], batch_first=True, norm_first=w["norm_first"],
                     bias=not w["no_bias"])
        for name in ("self_attn", "multihead_attn"):
            if hasattr(layer, name):
                setattr(layer, name, nn.MultiheadAttention(w["size"], self.heads, bias=w["bias"], batch_first=True))
        return layer

    def mask(self, mask, batch, queries, keys, fields):
        return mask.added((batch, self.heads, queries, keys), *fields).flatten(0, 1)


def stack(p, sizes, kind, of):
    """Some layers and, now and then, a norm."""
    sizes.words.update(layers=p.between(1, 2), final_norm=p.chance(0.5))
    norm = nn.LayerNorm(sizes.words["size"], bias=not sizes.words["no_bias"]) if sizes.words["final_norm"] else None
    more = {"enable_nested_tensor": False} if of is nn.TransformerEncoder else {}
    return of(sizes.layer(kind), sizes.words["layers"], norm, **more)


def draw_encoder(p, name, make):
    x, batch, length, size = draw_x(p)
    if size < 3:
        x, size = p.leaf([batch, length, 4], moderate), 4
    sizes = Sizes(p, size)
    module = without_values(lambda: make(sizes))
    mask = draw_mask(p, [batch, sizes.heads, length, length])
    add_module(p, name, module, [x, *mask.inputs],
               lambda call, x, *fields: call(x, sizes.mask(mask, batch, length, length, fields)),
               **sizes.words, **mask.words)


@op
def encoder_layer(p):
    draw_encoder(p, "encoder_layer", lambda sizes: sizes.layer(nn.TransformerEncoderLayer))


@op
def encoder(p):
    draw_encoder(p, "encoder", lambda sizes: stack(p, sizes, nn.TransformerEncoderLayer,
                                                   nn.TransformerEncoder))


def draw_decoder(p, name, make, in_pieces=False):
    """In pieces: no query may see a later key, and no gradient is recorded."""
    batch, length, memory_length, size = p.between(1, 3), p.between(1, 5), p.between(1, 5), p.between(3, 6)
    x, memory = p.shaped([batch, length, size], moderate), p.shaped([batch, memory_length, size], moderate)
    sizes = Sizes(p, size)
    module = without_values(lambda: make(sizes))
    mask = draw_mask(p, [batch, sizes.heads, length, length])
    other = draw_mask(p, [batch, sizes.heads, length, memory_length])
    if in_pieces:
        mask.words.update(causal=True, offset=0)
        sizes.words["first"] = p.between(0, length)

    def forward(call, x, memory, *fields):
        y = call(x, memory, sizes.mask(mask, batch, length, length, fields[:4]),
                 sizes.mask(other, batch, length, memory_length, fields[4:]))
        return y.detach() if in_pieces else y
    add_module(p, name, module, [x, memory, *mask.inputs, *other.inputs], forward, **sizes.words, **mask.words,
               **other.prefixed("memory_"))


@op
def decoder_layer(p):
    draw_decoder(p, "decoder_layer", lambda sizes: sizes.layer(nn.TransformerDecoderLayer))


@op
def decoder(p):
    draw_decoder(p, "decoder", lambda sizes: stack(p, sizes, nn.TransformerDecoderLayer,
                                                   nn.TransformerDecoder))


@op
def decoder_in_pieces(p):
    """Queries in pieces, with caches: what is read together gives the same."""
    draw_decoder(p, "decoder_in_pieces", lambda sizes: stack(p, sizes, nn.TransformerDecoderLayer,
                                                             nn.TransformerDecoder), in_pieces=True)


@op
def transformer(p):
    batch, length, source_length, size = p.between(1, 2), p.between(1, 4), p.between(1, 4), p.between(3, 6)
    x, source = p.shaped([batch, length, size], moderate), p.shaped([batch, source_length, size], moderate)
    sizes = Sizes(p, size)
    w = sizes.words
    w.update(bias=not w["no_bias"], layers=1, final_norm=True)
    module = without_values(lambda: nn.Transformer(
        size, sizes.heads, 1, 1, w["inner"], 0.0, w["kind"], batch_first=True, norm_first=w["norm_first"],
        bias=w["bias"]))
    lengths = (length, length), (length, source_length), (source_length, source_length)
    masks = [draw_mask(p, [batch, sizes.heads, *both]) for both in lengths]

    def forward(call, x, source, *fields):
        own, memory, of_source = [sizes.mask(mask, batch, *both, fields[4 * i:4 * i + 4])
                                  for i, (mask, both) in enumerate(zip(masks, lengths))]
        return call(source, x, of_source, own, memory)
    add_module(p, "transformer", module, [x, source, *masks[0].inputs, *masks[1].inputs, *masks[2].inputs], forward,
               **w, **masks[0].words, **masks[1].prefixed("memory_"), **masks[2].prefixed("source_"))


POSITIONS = ("learned", "sinusoidal", "rotary", "alibi")


def newer(p, positions):
    """What later models have and GPT-2 has not."""
    is_rotary = positions == "rotary"
    return {"positions": positions, "rms": p.chance(0.4), "inner": p.one([0, 0, 3]), "window": p.one([0, 0, 1, 2]),
            "untied": p.chance(0.4), "halves": is_rotary and p.chance(0.5),
            "base": p.one([10000, 100]) if is_rotary else 0, "head_size": p.one([0, 0, 2, 4, 6]),
            "norm_heads": p.chance(0.3),
            "scaling": p.one([None, (4,), (8, 1, 4, 64), (8, 0, 2, 9)]) if is_rotary else None}


def words_of(config):
    """The configuration in whole numbers: its positions, and the parts of its scaling."""
    scaling = config.pop("scaling") or ()
    names = "factor", "low", "high", "stretched"
    return {**config, "positions": POSITIONS.index(config["positions"]),
            **dict(zip(names, (*scaling, *[0] * (4 - len(scaling)))))}


@op
def gpt(p):
    heads = p.between(1, 3)
    groups = p.one([n for n in range(1, heads + 1) if heads % n == 0])
    config = {"vocabulary": p.between(2, 6), "context": p.between(1, 6), "heads": heads,
              "size": heads * (p.one([2, 4]) if heads > 1 else 4), "layers": p.between(1, 2), "groups": groups,
              "bias": p.chance(0.7), "kind": p.one(KINDS), **newer(p, p.one(POSITIONS))}
    module = without_values(lambda: written.GPT(**config))
    tokens = p.indices(config["vocabulary"], [p.between(1, 3), p.between(1, config["context"])])
    config = words_of(config)
    add_module(p, "gpt", module, [tokens], lambda call, tokens: call(tokens.long()), plain=p.chance(0.3), **config)


@op
def gpt_in_pieces(p):
    """Tokens in pieces, with a cache: what was read together gives the same."""
    size, heads, length = 4 * p.between(1, 2), p.one([1, 2]), p.between(1, 6)
    config = {"vocabulary": p.between(2, 6), "context": length, "heads": heads, "size": size, "layers": p.between(1, 2),
              "groups": p.one([1, heads]), "bias": p.chance(0.7), "kind": p.one(KINDS),
              **newer(p, p.one(POSITIONS))}
    module = without_values(lambda: written.GPT(**config))
    tokens = p.indices(config["vocabulary"], [p.between(1, 3), length])
    config = words_of(config)
    add_module(p, "gpt_in_pieces", module, [tokens], lambda call, tokens: call(tokens.long()).detach(),
               first=p.between(0, length), **config)


class Translator(nn.Module):
    def __init__(self, **config):
        super().__init__()
        self.encoder, self.decoder = seq2seq.Encoder(**config), seq2seq.Decoder(**config)

    def forward(self, source, target, lengths):
        results = self.decoder(target, *self.encoder(source), lengths)
        return [results["y"], results["state"], results["weights"]]


@op
def bahdanau(p):
    config = {"vocabulary": p.between(2, 6), "embedding": p.between(1, 4), "hidden": p.between(1, 4),
              "layers": p.between(1, 2)}
    module = without_values(lambda: Translator(**config))
    batch, length = p.between(1, 3), p.between(1, 5)
    source = p.indices(config["vocabulary"], [batch, length])
    target = p.indices(config["vocabulary"], [batch, p.between(1, 4)])
    lengths = p.input(p.random.integers(0, length + 1, batch), "int64")
    config["size"] = config.pop("hidden")
    add_module(p, "bahdanau", module, [source, target, lengths],
               lambda call, source, target, lengths: call(source.long(), target.long(), lengths), plain=p.chance(0.3),
               **config)
