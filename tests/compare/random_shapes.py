"""The ops of the op table that move, choose and normalise: how each is drawn, and what it is in PyTorch."""
import torch
from torch.nn import functional as F

from kinks import Rejected
from random_ops import ALL, draws, op


def any_dtype(p):
    return p.one(ALL) if p.chance(0.15) else "float"


# --- views ---

@op
def reshape(p):
    x = p.some(dtype=any_dtype(p))
    shape, left = [], p.values[x].numel()
    while left > 1 and len(shape) < 4:
        size = p.one([n for n in range(1, left + 1) if left % n == 0])
        shape.append(size)
        left //= size
    shape += [left] if left != 1 or not shape and p.values[x].dim() == 0 and p.chance(0.5) else []
    if p.chance(0.3) and p.values[x].numel() and shape:
        shape[p.below(len(shape))] = -1
    p.step("reshape", [x], lambda x: x.reshape(shape), chooses=True, number=shape)


@op
def transpose(p):
    x = p.some(1, dtype=any_dtype(p))
    axes = [p.axis(p.values[x]), p.axis(p.values[x])]
    p.step("transpose", [x], lambda x: x.transpose(*axes), chooses=True, axes=axes)


@op
def permute(p):
    x = p.some(0, dtype=any_dtype(p))
    rank = p.values[x].dim()
    axes = [int(axis) - (rank if p.chance(0.3) else 0) for axis in p.random.permutation(rank)]
    p.step("permute", [x], lambda x: x.permute(axes), chooses=True, axes=axes)


@op
def slice_(p):
    x = p.some(1, dtype=any_dtype(p))
    axis, size = p.axis(p.values[x]), max(p.values[x].shape)
    start, stop, step = p.between(-size - 1, size), p.between(-size - 1, size + 2), p.one([1, 1, 2, 3])
    if p.chance(0.4):
        start, stop = 0, size
    pick = lambda x: x.movedim(axis, 0)[start:stop:step].movedim(0, axis)
    p.step("slice", [x], pick, chooses=True, axis=axis, number=[start, stop, step])


@op
def select(p):
    x = p.some(1, dtype=any_dtype(p))
    axis = p.axis(p.values[x])
    size = p.values[x].shape[axis]
    index = p.between(-size, size - 1) if size else 0
    if size == 0:
        raise Rejected("nothing to select")
    p.step("select", [x], lambda x: x.select(axis, index), chooses=True, axis=axis, number=[index])


@op
def expand(p):
    x = p.some(0, 4, dtype=any_dtype(p))
    shape = [p.size() if size == 1 and p.chance(0.7) else -1 if p.chance(0.3) else size for size in p.values[x].shape]
    while len(shape) < 5 and p.chance(0.3):
        shape = [p.size()] + shape
    function = lambda x: x.expand(shape)
    if function(p.values[x]).numel() > p.most:
        raise Rejected("too large")
    p.step("expand", [x], function, chooses=True, number=shape)


@op
def squeeze(p):
    x = p.some(1, dtype=any_dtype(p), domain=lambda t: 1 in t.shape)
    axis = p.one([i for i, size in enumerate(p.values[x].shape) if size == 1])
    axis -= p.values[x].dim() if p.chance(0.3) else 0
    p.step("squeeze", [x], lambda x: x.squeeze(axis), chooses=True, axis=axis)


@op
def unsqueeze(p):
    x = p.some(0, 4, dtype=any_dtype(p))
    axis = p.axis(p.values[x], 1)
    p.step("unsqueeze", [x], lambda x: x.unsqueeze(axis), chooses=True, axis=axis)


@op
def split(p):
    """Several values."""
    x = p.some(1, dtype=any_dtype(p))
    axis = p.axis(p.values[x])
    left, sizes = p.values[x].shape[axis], []
    while len(sizes) < 3 and p.chance(0.7):
        sizes.append(p.between(0, left))
        left -= sizes[-1]
    sizes.append(left)
    p.step("split", [x], lambda x: x.split(sizes, axis), chooses=True, axis=axis, sizes=sizes)


# --- putting together ---

@op
def concat(p):
    x = p.some(1, dtype=any_dtype(p))
    axis, values, dtype = p.axis(p.values[x]), [x], p.values[x].dtype
    while len(values) < 4 and p.chance(0.7):
        shape = list(p.values[x].shape)
        shape[axis] = p.between(0, 3) if p.chance(0.6) else shape[axis]
        values.append(p.one(values) if p.chance(0.15) else p.shaped(shape, dtype=name_of(dtype)))
    p.step("concat", values, lambda *tensors: torch.cat(tensors, axis), chooses=True, axis=axis)


def name_of(dtype):
    return "float" if dtype == torch.float64 else str(dtype).removeprefix("torch.")


@op
def stack(p):
    x = p.some(0, 4, dtype=any_dtype(p))
    shape, dtype = list(p.values[x].shape), name_of(p.values[x].dtype)
    values = [x] + [p.shaped(shape, dtype=dtype) for _ in range(p.between(0, 3))]
    axis = p.axis(p.values[x], 1)
    p.step("stack", values, lambda *tensors: torch.stack(tensors, axis), chooses=True, axis=axis)


@op
def pad(p):
    x = p.some(1)
    axis, before, after, value = p.axis(p.values[x]), p.between(0, 2), p.between(0, 2), p.real(-2, 2)

    def function(x):
        return F.pad(x.movedim(axis, -1), (before, after), value=value).movedim(-1, axis)
    p.step("pad", [x], function, chooses=True, axis=axis, number=[before, after], real=value)


@op
def flip(p):
    x = p.some(dtype=any_dtype(p))
    axes = p.axes(p.values[x])
    every = axes or list(range(p.values[x].dim()))
    p.step("flip", [x], lambda x: torch.flip(x, every), chooses=True, axes=axes)


@op
def roll(p):
    x = p.some(1, dtype=any_dtype(p))
    axis, shift = p.axis(p.values[x]), p.between(-9, 9)
    p.step("roll", [x], lambda x: torch.roll(x, shift, axis), chooses=True, axis=axis, number=[shift])


def triangle(name, function):
    @draws(name)
    def draw(p):
        x, diagonal = p.some(2, dtype=any_dtype(p)), p.between(-3, 3)
        p.step(name, [x], lambda x: function(x, diagonal), chooses=True, number=[diagonal])


triangle("triu", torch.triu)
triangle("tril", torch.tril)


# --- indices ---

@op
def embed(p):
    table = p.turn(p.some(2, 2, dtype=any_dtype(p)))
    indices = p.indices(p.values[table].shape[0], p.shape(0, 2))
    p.step("embed", [table, indices], lambda table, indices: table[indices.long()], chooses=True)


@op
def index_select(p):
    x = p.some(1, dtype=any_dtype(p))
    axis = p.axis(p.values[x])
    indices = p.indices(p.values[x].shape[axis], [p.between(0, 5)])
    p.step("index_select", [x, indices], lambda x, indices: x.index_select(axis, indices), chooses=True, axis=axis)


def draw_places(p):
    """A value, an axis, and indices of a shape that is smaller but for this axis."""
    x = p.some(1)
    axis = p.axis(p.values[x])
    shape = [p.between(min(1, size), size) if p.chance(0.3) else size for size in p.values[x].shape]
    shape[axis] = p.between(0, 5)
    return x, axis, p.indices(p.values[x].shape[axis], shape)


@op
def gather(p):
    x, axis, indices = draw_places(p)
    same = p.values[indices].shape
    if any(a != b for i, (a, b) in enumerate(zip(same, p.values[x].shape)) if i != axis % len(same)):
        raise Rejected("rapt's gather takes indices of the tensor's shape but for the axis")
    p.step("gather", [x, indices], lambda x, indices: x.gather(axis, indices.long()), chooses=True, axis=axis)


@op
def scatter_add(p):
    x, axis, indices = draw_places(p)
    same = p.values[indices].shape
    if any(a != b for i, (a, b) in enumerate(zip(same, p.values[x].shape)) if i != axis % len(same)):
        raise Rejected("rapt's scatter_add takes indices of the tensor's shape but for the axis")
    source = p.shaped(list(same))
    p.step("scatter_add", [x, indices, source], lambda x, indices, source: x.scatter_add(axis, indices.long(), source),
           axis=axis)


@op
def one_hot(p):
    classes, to = p.between(1, 6), p.one(["float", "int64", "int32", "uint8", "bool"])
    dtype = torch.float64 if to == "float" else getattr(torch, to)
    indices = p.indices(classes, p.shape(0, 3))
    p.step("one_hot", [indices], lambda indices: F.one_hot(indices.long(), classes).to(dtype), chooses=True,
           number=[classes], to=to)


# --- normalisation ---

def along(name, function, **how):
    @draws(name)
    def draw(p):
        x = p.some(1)
        axis = p.axis(p.values[x])
        p.step(name, [x], lambda x: function(x, axis), axis=axis, **how)


along("softmax", F.softmax, cancels=True)
along("log_softmax", F.log_softmax, subtracts=True, cancels=True)


def spread(size, limit):
    """Rows that can be normalised: long enough to be changed by it smoothly, of numbers that differ."""
    return lambda t: not t.numel() or t.shape[-1] >= size and t.var(-1).min().item() > limit


@op
def layer_normalize(p):
    epsilon = p.one([1e-5, 0.5, 0.0])
    x = p.some(1, domain=spread(2, 0) if epsilon == 0.5 else spread(3, 1e-2))
    size = p.values[x].shape[-1]
    weight, bias = (p.shaped([size]) if p.chance(0.6) else None for _ in range(2))

    def function(x, weight, bias):
        """PyTorch's second derivative fails for a bias without a weight."""
        if weight is None:
            y = F.layer_norm(x, (size,), eps=epsilon)
            return y if bias is None else y + bias
        return F.layer_norm(x, (size,), weight, bias, epsilon)
    p.step("layer_normalize", [x, weight, bias], function, cancels=True, real=epsilon)


@op
def rms_normalize(p):
    epsilon = p.one([1e-6, 0.5, 0.0])
    x = p.some(1, domain=spread(2, 0 if epsilon == 0.5 else 1e-2))

    def function(x, weight):
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
        return y if weight is None else y * weight
    p.step("rms_normalize", [x, p.shaped([p.values[x].shape[-1]]) if p.chance(0.6) else None], function, cancels=True,
           real=epsilon)


@op
def drop(p):
    probability = float(p.below(2))
    p.step("drop", [p.some()], lambda x: F.dropout(x, probability), chooses=True, real=probability)


# --- beside the table ---

@op
def detach(p):
    p.step("detach", [p.some(dtype=any_dtype(p))], lambda x: x.detach(), chooses=True)


@op
def cast_through(p):
    wide = p.chance(0.5)
    function = lambda x: x + 0 if wide else x.float().double()
    p.step("cast_through", [p.some()], function, wide=wide)
