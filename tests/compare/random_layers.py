"""Basic and recurrent layers, and positions: how each is drawn, and what it is in PyTorch."""
import torch
from torch.nn import functional as F
from torch.nn.utils import rnn

from draw import moderate
from heads import alibi, rotate, sinusoidal
from random_ops import draws, op
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


def draw_convolution(p, axes):
    """x, weight, bias's chance, and stride, padding, dilation and groups."""
    groups, sizes = p.one([1, 1, 2, 3]), [p.between(1, 3) for _ in range(axes)]
    choices = [1, 1, 2, 3], [0, 1, 2], [1, 1, 2]
    stride, padding, dilation = ([p.one(numbers) for _ in range(axes)] for numbers in choices)
    lengths = [max(p.between(1, 7), (size - 1) * gap + 1 - 2 * pad) for size, gap, pad in zip(sizes, dilation, padding)]
    depth, out = p.between(1, 2), groups * p.between(1, 3)
    x = p.shaped([p.between(0, 3), groups * depth, *lengths])
    return x, (out, depth, *sizes), (stride, padding, dilation), groups


def along_axes(how):
    """As the op table has it: of the first axis, and of the second."""
    first, second = ([numbers[k] if k < len(numbers) else 0 for numbers in how] for k in range(2))
    return {"number": first, "axes": second}


def convolution(name, function, axes):
    @draws(name)
    def draw(p):
        x, shape, how, groups = draw_convolution(p, axes)
        weight, bias = p.shaped(list(shape)), p.shaped([shape[0]]) if p.chance(0.7) else None
        p.step(name, [x, weight, bias], lambda x, weight, bias: function(x, weight, bias, *how, groups), cancels=True,
               axis=groups, **along_axes(how))

    @draws(name + "_layer")
    def draw_layer(p):
        x, shape, how, groups = draw_convolution(p, axes)
        bias = p.chance(0.7)
        words, weights = weights_of(p, {"weight": shape, **({"bias": shape[:1]} if bias else {})})
        p.step(name + "_layer", [x, *weights],
               lambda x, weight, bias=None: function(x, weight, bias, *how, groups), cancels=True,
               in_size=groups * shape[1], out_size=shape[0], sizes=list(shape[2:]), bias=bias, axis=groups,
               **along_axes(how), **words)


convolution("conv1d", F.conv1d, 1)
convolution("conv2d", F.conv2d, 2)


def pool(name, function, axes, is_mean):
    @draws(name)
    def draw(p):
        sizes = [p.between(1, 3) for _ in range(axes)]
        stride, padding = [p.between(1, 3) for _ in sizes], [p.between(0, size // 2) for size in sizes]
        gaps = [1 if is_mean or pad else p.one([1, 1, 2]) for pad in padding]
        ceil, outside = p.chance(0.3), is_mean and p.chance(0.3)
        lengths = [max(p.between(1, 7), (size - 1) * gap + 1 - 2 * pad - (step - 1) * ceil)
                   for size, step, gap, pad in zip(sizes, stride, gaps, padding)]
        x = p.shaped([p.between(1, 2), p.between(1, 3), *lengths])
        rest = [ceil, not outside] if is_mean else [gaps, ceil]
        p.step(name, [x], lambda x: function(x, sizes, stride, padding, *rest), chooses=not is_mean,
               cancels=is_mean, variant=ceil + 2 * outside,
               **along_axes((sizes, stride, padding, gaps)))


pool("max_pool1d", F.max_pool1d, 1, False)
pool("max_pool2d", F.max_pool2d, 2, False)
pool("avg_pool1d", F.avg_pool1d, 1, True)
pool("avg_pool2d", F.avg_pool2d, 2, True)


def normalizable(t):
    """Channels of 3 or more numbers that differ."""
    return t.dim() > 1 and not t.numel() or t.dim() > 1 and t.numel() >= 3 * t.shape[1] and \
        t.transpose(0, 1).flatten(1).var(-1).min().item() > 1e-2


@op
def batch_norm(p):
    x = p.some(2, domain=lambda t: t.numel() and normalizable(t))
    size, epsilon, momentum = p.values[x].shape[1], p.one([1e-5, 1e-2]), p.one([0.1, 0.5, 1.0])
    words, weights = weights_of(p, {"weight": (size,), "bias": (size,)})

    def run(x, weight, bias):
        x = x.contiguous()  # channels last of rank 5: the gradient of PyTorch 2.6's bias is not the sum of y's
        mean, variance = torch.zeros(size, dtype=x.dtype), torch.ones(size, dtype=x.dtype)
        y = F.batch_norm(x, mean, variance, weight, bias, True, momentum, epsilon)
        return [y, F.batch_norm(x, mean.clone(), variance.clone(), weight, bias, False, momentum, epsilon)]
    p.step("batch_norm", [x, *weights], run, cancels=True, size=size, epsilon=epsilon, momentum=momentum, **words)


@op
def batch_normalize(p):
    x, epsilon = p.some(2, domain=normalizable), p.one([1e-5, 1e-2])
    size = p.values[x].shape[1]
    weight, bias = (p.shaped([size]) if p.chance(0.6) else None for _ in range(2))

    def run(x, weight, bias):
        y = x if not x.numel() else F.batch_norm(x.contiguous(), None, None, None, None, True, 0, epsilon)
        each = [-1 if axis == 1 else 1 for axis in range(x.dim())]
        y = y if weight is None else y * weight.reshape(each)
        return y if bias is None else y + bias.reshape(each)
    p.step("batch_normalize", [x, weight, bias], run, cancels=True, real=epsilon)


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
    """function: torch.gru or torch.lstm, with its states as a list."""
    x = p.some(3, 3, domain=lambda t: t.shape[0] > 0 and t.shape[2] > 0 and moderate(t))
    steps, batch, size = p.values[x].shape
    hidden, layers, final, directions = p.size(), p.one([1, 1, 2, 3]), p.chance(0.5), p.one([1, 2])
    lengths = [p.between(1, steps) for _ in range(batch)] if batch <= 8 and p.chance(0.4) else []
    shapes = {}
    for layer in range(layers):
        for suffix in ("", "_reverse")[:directions]:
            shapes[f"weight_ih_l{layer}{suffix}"] = (gates * hidden, directions * hidden if layer else size)
            shapes[f"weight_hh_l{layer}{suffix}"] = (gates * hidden, hidden)
            shapes[f"bias_ih_l{layer}{suffix}"] = shapes[f"bias_hh_l{layer}{suffix}"] = (gates * hidden,)
    words, weights = weights_of(p, shapes)
    states = gates - 2  # GRU 1, LSTM 2
    given = [p.shaped([layers * directions, batch, hidden], moderate) for _ in range(states)]
    if p.chance(0.4):
        given = [None] * states

    def run(x, *rest):
        zeros = torch.zeros(layers * directions, batch, hidden, dtype=x.dtype)
        start = [zeros if state is None else state for state in rest[:states]]
        how = list(rest[states:]), True, layers, 0.0, True, directions == 2
        if not lengths:
            y, *ends = function(x, start, *how, False)
        else:
            packed = rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
            y, *ends = function(packed.data, packed.batch_sizes, [state[:, packed.sorted_indices] for state in start],
                                *how)
            y = rnn.pad_packed_sequence(packed._replace(data=y), total_length=steps)[0]
            ends = [state[:, packed.unsorted_indices] for state in ends]
        return [y, *ends] if final else y
    p.step(name, [x, *given, *weights], run, cancels=True, in_size=size, hidden=hidden, layers=layers, final=final,
           bidirectional=directions == 2, lengths=lengths, plain=p.chance(0.3), **words)


@op
def gru_forward(p):
    recurrent(p, "gru_forward", 3, lambda *inputs: torch.gru(*[x[0] if isinstance(x, list) and len(x) == 1 else x
                                                               for x in inputs]))


@op
def lstm_forward(p):
    recurrent(p, "lstm_forward", 4, torch.lstm)


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
