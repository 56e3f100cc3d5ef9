"""Basic and recurrent layers, and positions: how each is drawn, and what it is in PyTorch."""
import torch
from torch.nn import functional as F

from draw import moderate
from heads import alibi, rotate, sinusoidal
from random_ops import op
from random_shapes import spread


def weights_of(p, shapes):
    """New values as the weights of a step's module: what the step says of them, and their numbers."""
    numbers = [p.weight(*shape) for shape in shapes.values()]
    return {"names": list(shapes), "weights": numbers}, numbers


@op
def linear(p):
    x, out, bias = p.some(1), p.size(), p.chance(0.7)
    size = p.values[x].shape[-1]
    words, weights = weights_of(p, {"weight": (out, size), **({"bias": (out,)} if bias else {})})
    p.step("linear", [x, *weights], F.linear, in_size=size, out_size=out, bias=bias, **words)


@op
def embedding(p):
    count, size = p.size(), p.size()
    tokens = p.indices(count, p.shape(0, 3))
    words, weights = weights_of(p, {"weight": (count, size)})
    p.step("embedding", [tokens, *weights], lambda tokens, weight: F.embedding(tokens.long(), weight), chooses=True,
           count=count, size=size, **words)


@op
def layer_norm(p):
    x, bias, epsilon = p.some(1, domain=spread(3, 1e-2)), p.chance(0.7), p.one([1e-5, 1e-2])
    size = p.values[x].shape[-1]
    words, weights = weights_of(p, {"weight": (size,), **({"bias": (size,)} if bias else {})})
    p.step("layer_norm", [x, *weights], lambda x, *weights: F.layer_norm(x, (size,), *weights, eps=epsilon),
           cancels=True, size=size, bias=bias, epsilon=epsilon, **words)


@op
def rms_norm(p):
    x, epsilon = p.some(1, domain=spread(2, 1e-2)), p.one([1e-6, 1e-2])
    size = p.values[x].shape[-1]
    words, weights = weights_of(p, {"weight": (size,)})
    p.step("rms_norm", [x, *weights], lambda x, weight: F.rms_norm(x, (size,), weight, epsilon), cancels=True,
           size=size, epsilon=epsilon, **words)


@op
def dropout(p):
    """PyTorch's random numbers are others: all, none, or evaluation."""
    probability, training = p.one([(0.0, True), (1.0, True), (0.5, False)])
    p.step("dropout", [p.some()], lambda x: F.dropout(x, probability, training), chooses=True, probability=probability,
           training=training)


@op
def sequential(p):
    x, inner, out = p.some(1, domain=moderate), p.size(), p.size()
    size = p.values[x].shape[-1]
    words, weights = weights_of(p, {"0.weight": (inner, size), "0.bias": (inner,), "2.weight": (out, inner)})
    p.step("sequential", [x, *weights], lambda x, a, b, c: F.linear(torch.tanh(F.linear(x, a, b)), c), cancels=True,
           in_size=size, inner=inner, out_size=out, **words)


def recurrent(p, name, gates, function):
    """function: of x, the states, and the weights; gives outputs and states."""
    x = p.some(3, 3, domain=lambda t: t.shape[0] > 0 and t.shape[2] > 0 and moderate(t))
    batch, size = p.values[x].shape[1:]
    hidden, layers, final = p.size(), p.one([1, 1, 2, 3]), p.chance(0.5)
    shapes = {}
    for layer in range(layers):
        shapes[f"weight_ih_l{layer}"] = (gates * hidden, hidden if layer else size)
        shapes[f"weight_hh_l{layer}"] = (gates * hidden, hidden)
        shapes[f"bias_ih_l{layer}"] = shapes[f"bias_hh_l{layer}"] = (gates * hidden,)
    words, weights = weights_of(p, shapes)
    states = gates - 2  # GRU 1, LSTM 2
    given = [p.shaped([layers, batch, hidden], moderate) for _ in range(states)]
    if p.chance(0.4):
        given = [None] * states

    def run(x, *rest):
        zeros = torch.zeros(layers, batch, hidden, dtype=x.dtype)
        start = [zeros if state is None else state for state in rest[:states]]
        y, *ends = function(x, start, list(rest[states:]), layers)
        return [y, *ends] if final else y
    p.step(name, [x, *given, *weights], run, cancels=True, in_size=size, hidden=hidden, layers=layers, final=final,
           plain=p.chance(0.3), **words)


@op
def gru_forward(p):
    recurrent(p, "gru_forward", 3, lambda x, start, weights, layers:
              torch.gru(x, start[0], weights, True, layers, 0.0, True, False, False))


@op
def lstm_forward(p):
    recurrent(p, "lstm_forward", 4, lambda x, start, weights, layers:
              torch.lstm(x, start, weights, True, layers, 0.0, True, False, False))


# --- positions ---

def long_rows(t):
    return t.shape[-1] > 0


@op
def sinusoidal_positions(p):
    x, offset = p.some(2, domain=long_rows), p.one([0, 3, 40])
    length, size = p.values[x].shape[-2:]
    p.step("sinusoidal_positions", [x], lambda x: x + sinusoidal(offset, length, size, x.dtype), size=size,
           offset=offset)


@op
def learned_positions(p):
    x, offset = p.some(2, domain=long_rows), p.below(3)
    length, size = p.values[x].shape[-2:]
    count = max(1, length + offset + p.below(3))
    words, weights = weights_of(p, {"weight": (count, size)})
    p.step("learned_positions", [x, *weights], lambda x, weight: x + weight[offset:offset + length], count=count,
           size=size, offset=offset, **words)


def draw_rotation(p, name):
    x = p.some(2, domain=lambda t: t.shape[-1] > 0 and t.shape[-1] % 2 == 0)
    offset, base, halves = p.one([0, 3, 40]), p.one([10000.0, 100.0]), p.chance(0.5)
    p.step(name, [x], lambda x: rotate(x, offset, halves, base), offset=offset, base=base, halves=halves)


@op
def rotate_(p):
    draw_rotation(p, "rotate")


@op
def rotary(p):
    draw_rotation(p, "rotary")


@op
def alibi_(p):
    heads, reach = p.between(1, 7), p.between(0, 4)
    p.step("alibi", [], lambda: alibi(heads, reach, torch.float64), heads=heads, reach=reach)


@op
def relative_bias(p):
    heads, reach = p.between(1, 5), p.between(0, 4)
    words, weights = weights_of(p, {"weight": (heads, 2 * reach + 1)})
    p.step("relative_bias", weights, lambda weight: weight[:, None], chooses=True, heads=heads, reach=reach, **words)
