"""The rest of the op table (folds, order, products by name, copies, draws, sparse weights, packing): how each is drawn,
and what it is in PyTorch."""
import itertools
import math

import torch

from draw import anything, nonzero
from kinks import Rejected
from program import largest
from random_ops import ALL, NUMBERS, draws, op, reduction
from random_shapes import any_dtype, draw_places


@op
def argmin(p):
    x = p.some(1, dtype=p.one(NUMBERS) if p.chance(0.2) else "float")
    axis, keep = p.axis(p.values[x]), p.chance(0.4)
    p.step("argmin", [x], lambda x: torch.argmin(x, axis, keep), chooses=True, axis=axis, keep=keep)


# --- over axes ---

def running_product(x, axis):
    """PyTorch's gradients divide by the factors, and lose the digits that a small one costs."""
    if not x.is_floating_point() or x.shape[axis] == 0:
        return torch.cumprod(x, axis)
    return torch.stack(list(itertools.accumulate(x.unbind(axis), torch.mul)), axis)


def product(x, axes, keep):
    """PyTorch's takes one axis."""
    if not x.dim():
        return x.prod()
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True):
        x = running_product(x, axis).narrow(axis, -1, 1) if x.shape[axis] else x.prod(axis, keepdim=True)
        x = x if keep else x.squeeze(axis)
    if ((x != 0) & (x.abs() < 1e-30)).any():
        raise Rejected("float32 has no such product")
    return x


reduction("prod", product, dtypes=ALL)


@op
def std(p):
    x = p.some()
    axes, keep, correction = p.axes(p.values[x]), p.chance(0.4), p.one([0, 1, 1, 2])
    every = tuple(axes or range(p.values[x].dim()))
    if math.prod(p.values[x].shape[axis] for axis in every) - correction <= 0 or not every:
        raise Rejected("too few numbers")
    smallest = torch.std(p.values[x], every, correction=correction)
    if smallest.numel() and smallest.min().item() < 0.1 * largest(p.values[x]):
        raise Rejected("all but constant")
    p.step("std", [x], lambda x: torch.std(x, every, correction=correction, keepdim=keep), subtracts=True,
           cancels=True, axes=axes, keep=keep, variant=correction)


@op
def norm(p):
    order = p.one([2.0, 2.0, 1.0, 3.0, 0.5, 1.5, -1.0, 0.0, math.inf, -math.inf])
    x = p.some(domain=anything if order in (2.0, 1.0) else nonzero)
    axes, keep = p.axes(p.values[x]), p.chance(0.4)
    every = tuple(axes or range(p.values[x].dim()))

    def function(x):
        if math.isinf(order):
            return (torch.amax if order > 0 else torch.amin)(x.abs(), every, keep)
        if order == 0:  # with a gradient, which is 0; PyTorch's is None
            return (x * 0 + 1).sum(every, keep) if every else x * 0 + 1
        return x.abs().sum(every, keep) if order == 1 and every else torch.linalg.vector_norm(x, order, every, keep)
    p.step("norm", [x], function, jumps=math.isinf(order), axes=axes, keep=keep, real=order)


@op
def cumprod(p):
    x = p.some(1, dtype=p.one(ALL) if p.chance(0.2) else "float")
    axis = p.axis(p.values[x])
    p.step("cumprod", [x], lambda x: running_product(x, axis), axis=axis)


# --- order ---

def draw_line(p):
    x = p.some(1, dtype=any_dtype(p))
    return x, p.axis(p.values[x]), p.chance(0.5)


@op
def sort(p):
    x, axis, descending = draw_line(p)
    p.step("sort", [x], lambda x: torch.sort(x, stable=True, dim=axis, descending=descending)[0], chooses=True,
           axis=axis, variant=int(descending))


@op
def argsort(p):
    x, axis, descending = draw_line(p)
    p.step("argsort", [x], lambda x: torch.argsort(x, stable=True, dim=axis, descending=descending), chooses=True,
           axis=axis, variant=int(descending))


@op
def topk(p):
    x, axis, descending = draw_line(p)
    count = p.between(0, p.values[x].shape[axis])
    p.step("topk", [x], lambda x: torch.sort(x, stable=True, dim=axis, descending=descending)[0].narrow(axis, 0, count),
           chooses=True, axis=axis, number=[count], variant=int(descending))


# --- products by name; the equations of tests/ops_einsum.c ---

EQUATIONS = ("ij,jk->ik", "ij, kj -> ki", "bhqd,bhkd->bhqk", "ij,jk", "...ij,...jk->...ik", "b...,bc", "ii", "bii->bi",
             "iji->j", "ij->ji", "ba", "i,j->ij", "i,i->", "ij,ij->i", "ab,bc,cd->da", "ab,cd,bd,e->ac", "...->",
             ",ij->ij", "iA,Aj", "iii->i", "ij,j")


@op
def einsum(p):
    number = p.below(len(EQUATIONS))
    names = EQUATIONS[number].split("->")[0].replace(" ", "").replace("...", "yz")
    sizes = {name: p.size() for name in names}
    inputs = [p.turn(p.shaped([sizes[name] for name in part])) for part in names.split(",")]
    p.step("einsum", inputs, lambda *tensors: torch.einsum(EQUATIONS[number], *tensors), variant=number)


@op
def outer(p):
    a, b = p.some(1, 1), p.some(1, 1)
    p.step("outer", [a, b], torch.outer)


# --- copies ---

@op
def tile(p):
    x, repeats = p.some(0, 4, dtype=any_dtype(p)), [p.between(0, 3) if p.chance(0.5) else 1
                                                    for _ in range(p.between(0, 4))]
    if p.values[x].numel() * math.prod(repeats) > p.most:
        raise Rejected("too large")
    p.step("tile", [x], lambda x: torch.tile(x, repeats), chooses=True, number=repeats)


@op
def repeat_interleave(p):
    x, repeats = p.some(1, dtype=any_dtype(p)), p.between(0, 3)
    axis = p.axis(p.values[x])
    p.step("repeat_interleave", [x], lambda x: torch.repeat_interleave(x, repeats, axis), chooses=True, axis=axis,
           number=[repeats])


@op
def scatter(p):
    """Of places that differ: which of two PyTorch takes is not said."""
    x, axis, indices = draw_places(p)
    axis %= p.values[x].dim()
    shape = list(p.values[indices].shape)
    shape[axis] = p.between(0, p.values[x].shape[axis])
    order = p.random.permuted(torch.arange(p.values[x].shape[axis]).expand(
        *shape[:axis], *shape[axis + 1:], -1).numpy().copy(), axis=-1)[..., :shape[axis]]
    places = p.input(torch.from_numpy(order.copy()).movedim(-1, axis).numpy(), p.one(["int64", "int32"]))
    source = p.shaped(shape)
    p.step("scatter", [x, places, source], lambda x, places, source: x.scatter(axis, places.long(), source),
           chooses=True, axis=axis)


# --- draws ---

@op
def multinomial(p):
    """Of one weight above 0, of which every draw is known."""
    n, replace = p.between(1, 5), p.chance(0.5)
    weights = torch.zeros([*p.shape(0, 1), n], dtype=torch.float64)
    weights[..., p.below(n)] = 0.5
    count = p.between(1, 4) if replace else 1
    p.step("multinomial", [p.input(weights.numpy())], lambda x: torch.multinomial(x, count, replace), chooses=True,
           number=[count], keep=replace)


# --- sparse weights ---

OFF_KINKS = 0.83984375  # as in tests/ops_normalize.c


def sparse(name, is_entmax):
    def function(x):
        """By sorting: of the k largest numbers, for the largest k that lie above the threshold."""
        if not x.isfinite().all():  # after a training that went astray
            raise Rejected("not finite")
        z = OFF_KINKS * x / (2 if is_entmax else 1)
        down = z.sort(-1, descending=True)[0]
        k = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
        mean, squares = down.cumsum(-1) / k, down.square().cumsum(-1)
        rest = (1 - (squares - k * mean.square())) / k
        above = mean - rest.clamp(min=0).sqrt() <= down if is_entmax else mean - 1 / k < down
        last = above.sum(-1, keepdim=True) - 1
        threshold = mean.gather(-1, last) - (rest.gather(-1, last).sqrt() if is_entmax else 1 / k[last])
        return (z - threshold).clamp(min=0) ** (2 if is_entmax else 1)

    @draws(name)
    def draw(p):
        x = p.some(1)
        axis = p.axis(p.values[x])
        p.step(name, [x], lambda x: function(x.transpose(axis, -1)).transpose(axis, -1), subtracts=True, cancels=True,
               axis=axis)


sparse("sparsemax", False)
sparse("entmax15", True)


# --- packing ---

@op
def pack(p):
    x = p.some(2, dtype=any_dtype(p))
    items, longest = p.values[x].shape[:2]
    if not 0 < items <= 5:
        raise Rejected("a sample has five numbers")
    lengths = [p.between(0, longest) for _ in range(items)]
    p.step("pack", [x], lambda x: torch.cat([item[:length] for item, length in zip(x, lengths)]), chooses=True,
           number=lengths)


@op
def unpack(p):
    """axis: the length of what comes out, or 0 for the longest."""
    x, lengths = p.some(1, 4, dtype=any_dtype(p)), []
    left = p.values[x].shape[0]
    while len(lengths) < 4 and p.chance(0.6):
        lengths.append(p.between(0, left))
        left -= lengths[-1]
    lengths.append(left)
    length, value = p.one([0, max(lengths) + p.between(0, 2)]), 1.0 if p.chance(0.3) else 0.0

    def function(x):
        longest = length or max(lengths)
        return torch.stack([torch.cat([piece, torch.full((longest - len(piece), *x.shape[1:]), value, dtype=x.dtype)])
                            for piece in x.split(lengths)])
    p.step("unpack", [x], function, chooses=True, axis=length, number=lengths, real=value)
