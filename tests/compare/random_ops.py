"""The ops of the op table: how each is drawn, and what it is in PyTorch."""
import math
import warnings

import torch
from torch.nn import functional as F

from draw import INTEGERS, anything, below, nonzero, positive
from kinks import Rejected
from program import dtype_name, largest

ops = {}  # name → a function that adds a step to a program
for what in ("Using a target size", "reduction: 'mean'", "var\\(\\): degrees"):  # losses that broadcast, kl_div, var
    warnings.filterwarnings("ignore", message=what)


def draws(name):
    def add(function):
        ops[name] = function
        return function
    return add


def op(function):
    return draws(function.__name__.rstrip("_"))(function)


# --- element by element ---

def binary(name, function, domain=anything, second=anything, dtypes=("float",), **how):
    @draws(name)
    def draw(p):
        dtype = p.one(dtypes) if p.chance(0.3) else dtypes[0]
        a = p.some(domain=domain, dtype=dtype)
        b = p.partner(a, second, dtype)
        if domain is second and p.chance(0.5):
            a, b = b, a
        p.step(name, [a, b], function, **how)


def no_step(tensor):
    """Neither integers nor halves are near."""
    return not tensor.numel() or (2 * tensor - (2 * tensor).round()).abs().min().item() > 1e-3


NUMBERS = ("float", *INTEGERS)
ALL = (*NUMBERS, "bool")


def divide(a, b):
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="floor")


def draw_number(p, dtype):
    """Of that dtype; floats are now and then such as equal numbers are drawn from."""
    if dtype != "float":
        return p.between(0, 1 if dtype == "bool" else 3)
    return p.between(-4, 4) / 2 if p.chance(0.3) else p.real(-3, 3)


def with_number(name, function, dtypes=NUMBERS, **how):
    @draws(name)
    def draw(p):
        dtype = p.one(dtypes) if p.chance(0.2) else "float"
        number = draw_number(p, dtype)
        p.step(name, [p.some(dtype=dtype)], lambda x: function(x, number), real=float(number), **how)


def with_tensor(function):
    """PyTorch's maximum and minimum take no number."""
    return lambda x, number: function(x, torch.tensor(number, dtype=x.dtype))


with_number("add_scalar", torch.add)
with_number("mul_scalar", torch.mul)
with_number("maximum_scalar", with_tensor(torch.maximum), chooses=True)
with_number("minimum_scalar", with_tensor(torch.minimum), chooses=True)
binary("add", torch.add, dtypes=NUMBERS)
binary("sub", torch.sub, dtypes=NUMBERS)
binary("mul", torch.mul, dtypes=NUMBERS)
binary("div", divide, second=nonzero, dtypes=NUMBERS)
binary("pow", torch.pow, domain=positive, second=lambda x: below(4)(x) and nonzero(x))  # at 0 PyTorch lacks d²/da db
binary("maximum", torch.maximum, dtypes=NUMBERS, chooses=True)
binary("minimum", torch.minimum, dtypes=NUMBERS, chooses=True)
for name, function in [("equal", torch.eq), ("not_equal", torch.ne), ("less", torch.lt), ("less_equal", torch.le),
                       ("greater", torch.gt), ("greater_equal", torch.ge)]:
    binary(name, function, dtypes=ALL, chooses=True)
    with_number(name + "_scalar", function, dtypes=ALL, chooses=True)
binary("logical_and", torch.logical_and, dtypes=("bool",))
binary("logical_or", torch.logical_or, dtypes=("bool",))


def unary(name, function, domain=anything, dtypes=("float",), **how):
    @draws(name)
    def draw(p):
        p.step(name, [p.some(domain=domain, dtype=p.one(dtypes) if p.chance(0.2) else dtypes[0])], function, **how)


unary("neg", torch.neg, dtypes=NUMBERS, chooses=True)
unary("abs", torch.abs, dtypes=NUMBERS, chooses=True)
unary("exp", torch.exp, below(5))
unary("log", torch.log, positive)
unary("expm1", torch.expm1, below(5))
unary("log1p", torch.log1p, positive)
unary("sqrt", torch.sqrt, positive)
unary("rsqrt", torch.rsqrt, positive)
unary("sin", torch.sin, below(50))
unary("cos", torch.cos, below(50))
unary("tanh", torch.tanh, cancels=True)
unary("sigmoid", torch.sigmoid, cancels=True)
unary("erf", torch.erf, cancels=True)
unary("relu", torch.relu, chooses=True)
unary("gelu", F.gelu, subtracts=True, cancels=True)
unary("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), below(3), subtracts=True,
      cancels=True)
unary("silu", F.silu, cancels=True)
unary("softplus", F.softplus, below(15), cancels=True)  # from 20 on PyTorch's is x
unary("mish", F.mish, below(15), cancels=True)
unary("sign", torch.sign, chooses=True)
for name, function in [("floor", torch.floor), ("ceil", torch.ceil), ("round", torch.round)]:
    unary(name, function, no_step, chooses=True)
with_number("leaky_relu", F.leaky_relu, dtypes=("float",), jumps=True)
with_number("elu", lambda x, alpha: torch.relu(x) + alpha * torch.expm1(x.clamp(max=0)), dtypes=("float",),
            jumps=True)  # PyTorch's own loses digits near 0, and has another second derivative there
unary("logical_not", torch.logical_not, dtypes=("bool",))
unary("isfinite", torch.isfinite, dtypes=ALL, chooses=True)
unary("flatnonzero", lambda x: torch.nonzero(x.flatten()).flatten(), dtypes=ALL, chooses=True)
unary("contiguous", lambda x: x.contiguous(), dtypes=ALL, chooses=True)


@op
def pow_scalar(p):
    number, domain = p.one([(0.0, anything), (1.0, anything), (2.0, anything), (3.0, anything), (-1.0, nonzero),
                            (-2.0, nonzero), (0.5, positive), (2.75, positive), (-1.5, positive)])
    p.step("pow_scalar", [p.some(domain=domain)], lambda x: x ** number, real=number)


@op
def clamp(p):
    low, high = sorted(p.real(-2, 2) for _ in range(2))
    low, high = p.one([(low, high), (low, math.inf), (-math.inf, high)])
    p.step("clamp", [p.some()], lambda x: torch.clamp(x, low, high), chooses=True, real=low, real2=high)


@op
def where(p):
    a = p.some(dtype=p.one(ALL) if p.chance(0.2) else "float")
    b = p.partner(a)
    p.step("where", [p.partner(p.one([a, b]), dtype="bool"), a, b], torch.where, chooses=True)


@op
def masked_fill(p):
    x = p.some(dtype=p.one(ALL) if p.chance(0.2) else "float")
    mask, number = p.partner(x, dtype="bool"), draw_number(p, dtype_name(p.values[x]))
    fill = lambda x, mask: x.masked_fill(mask.expand(x.shape), number)  # PyTorch's own would expand x too
    p.step("masked_fill", [x, mask], fill, chooses=True, real=float(number))


@op
def cast(p):
    """To numbers that every dtype has in the same way."""
    source, to = p.one([(a, b) for a in ("int64", "int32", "bool") for b in ("float", "int64", "int32", "bool")]
                       + [("uint8", "float"), ("uint8", "int64"), ("float", "int64"), ("float", "bool"),
                          ("float", "float")])
    dtype = torch.float64 if to == "float" else getattr(torch, to)
    away = lambda x: (x - x.round()).abs().min().item() > 1e-3 and nonzero(x) if x.numel() else True
    x = p.some(domain=away if source == "float" != to else anything, dtype=source)
    p.step("cast", [x], lambda x: x.to(dtype), chooses=True, to=to)


# --- reductions ---

def reduction(name, function, domain=anything, dtypes=("float",), **how):
    """PyTorch's functions take all axes by their names."""
    @draws(name)
    def draw(p):
        x = p.some(domain=domain, dtype=p.one(dtypes) if p.chance(0.2) else dtypes[0])
        axes, keep = p.axes(p.values[x]), p.chance(0.4)
        every = tuple(axes or range(p.values[x].dim()))
        p.step(name, [x], lambda x: function(x, every, keep), axes=axes, keep=keep, **how)


def total(x, axes, keep):
    return x.sum(axes, keepdim=keep) if axes else x.clone() if x.is_floating_point() else x.sum()


def average(x, axes, keep):
    return x.mean(axes, keepdim=keep) if axes else x.clone()


reduction("sum", total, dtypes=ALL)
reduction("mean", average)
reduction("max", lambda x, axes, keep: torch.amax(x, axes, keep), dtypes=ALL, chooses=True)
reduction("min", lambda x, axes, keep: torch.amin(x, axes, keep), dtypes=ALL, chooses=True)
reduction("logsumexp", lambda x, axes, keep: torch.logsumexp(x, axes, keep), cancels=True)


def counted(function):
    """PyTorch's any and all of no axes at all, and of uint8, give no bool."""
    return lambda x, axes, keep: function(x != 0, axes, keep) if axes else x != 0


reduction("any", counted(torch.any), dtypes=ALL, chooses=True)
reduction("all", counted(torch.all), dtypes=ALL, chooses=True)


@op
def var(p):
    x = p.some()
    axes, keep, correction = p.axes(p.values[x]), p.chance(0.4), p.one([0, 1, 1, 2])
    every = tuple(axes or range(p.values[x].dim()))
    freedom = math.prod(p.values[x].shape[axis] for axis in every) - correction
    if freedom <= 0:
        raise Rejected("too few numbers")
    p.step("var", [x], lambda x: torch.var(x, every, correction=correction, keepdim=keep) if every else x * 0,
           cancels=max(1.0, 2 * largest(p.values[x]) / freedom), axes=axes, keep=keep, variant=correction)


@op
def argmax(p):
    x = p.some(1, dtype=p.one(NUMBERS) if p.chance(0.2) else "float")
    axis, keep = p.axis(p.values[x]), p.chance(0.4)
    p.step("argmax", [x], lambda x: torch.argmax(x, axis, keep), chooses=True, axis=axis, keep=keep)


@op
def cumsum(p):
    x = p.some(1, dtype=p.one(ALL) if p.chance(0.2) else "float")
    axis = p.axis(p.values[x])
    p.step("cumsum", [x], lambda x: torch.cumsum(x, axis), axis=axis)


# --- products ---

@op
def matmul(p):
    a = p.turn(p.some(1, 4))
    shape = list(p.values[a].shape)
    inner, batch = shape[-1], [1 if p.chance(0.3) else size for size in shape[:-2]]
    batch = batch[p.between(0, len(batch)):] if p.chance(0.4) else batch
    b = p.turn(p.shaped([inner] if p.chance(0.2) else [*batch, inner, p.size()]))
    if p.chance(0.3):
        a, b = b, a  # rejected by PyTorch unless it fits
    p.step("matmul", [a, b], torch.matmul)


@op
def affine(p):
    x = p.some(1)
    size, out = p.values[x].shape[-1], p.size()
    p.step("affine", [x, p.turn(p.shaped([out, size])), p.shaped([out]) if p.chance(0.7) else None], F.linear)


def gelu_tanh(x):
    """PyTorch's own loses digits of second derivatives, and so does its sigmoid, of whose result 1 is nearly all."""
    v = math.sqrt(8 / math.pi) * (x + 0.044715 * x ** 3)
    e = torch.exp(-torch.where(v > 0, v, -v))
    return x * torch.where(v > 0, torch.ones_like(e), e) / (1 + e)


ACTIVATIONS = (F.relu, F.gelu, gelu_tanh, F.silu)


@op
def affine_activation(p):
    x = p.some(1)
    size, out, kind = p.values[x].shape[-1], p.size(), p.below(len(ACTIVATIONS))
    inputs = [x, p.turn(p.shaped([out, size])), p.shaped([out]) if p.chance(0.7) else None]
    p.step("affine_activation", inputs, lambda *inputs: ACTIVATIONS[kind](F.linear(*inputs)), subtracts=True,
           cancels=True, variant=kind)


# --- losses ---

REDUCTIONS = ("mean", "sum", "none")


def draw_classes(p, name, loss, inputs=None, project=lambda x: x, shape=None):
    """Targets of the logits' shape without the last axis; the logits are the input, or made of several. PyTorch's
    gradients are exponentials of numbers as large as the logits, with as many times their rounding."""
    inputs = inputs or [p.some(1, 4)]
    size = largest(project(*[None if i is None else p.values[i] for i in inputs]))
    *shape, classes = shape or p.values[inputs[0]].shape
    reduction, ignored = p.below(3), p.below(max(classes, 1)) if p.chance(0.4) else None
    smoothing = p.one([0.0, 0.125, 1.0]) if name != "nll_loss" and p.chance(0.4) else 0.0
    targets = p.indices(classes, shape)
    count = (p.values[targets] != ignored).sum().item() if ignored is not None else math.prod(shape)
    words = {"ignore_index": -100 if ignored is None else ignored, "reduction": "none"}

    def function(*tensors):
        x, targets = project(*tensors[:-1]), tensors[-1]
        losses = loss(x.flatten(0, -2), targets.flatten().long(), smoothing, words).reshape(shape)
        return losses if reduction == 2 else losses.sum() if reduction == 1 else losses.sum() / max(count, 1)
    p.step(name, [*inputs, targets], function, subtracts=True, cancels=max(1.0, size), keep=ignored is not None,
           number=[ignored or 0], real=smoothing, variant=reduction)


@op
def cross_entropy(p):
    draw_classes(p, "cross_entropy", lambda x, targets, smoothing, words: F.cross_entropy(
        x, targets, label_smoothing=smoothing, **words))


@op
def linear_cross_entropy(p):
    x, classes = p.some(1, 4), p.between(1, 6)
    *shape, size = p.values[x].shape
    weight, bias = p.turn(p.shaped([classes, size])), p.shaped([classes]) if p.chance(0.7) else None
    draw_classes(p, "linear_cross_entropy", lambda z, targets, smoothing, words: F.cross_entropy(
        z, targets, label_smoothing=smoothing, **words), [x, weight, bias], F.linear, [*shape, classes])


@op
def nll_loss(p):
    draw_classes(p, "nll_loss", lambda x, targets, smoothing, words: F.nll_loss(x, targets, **words))


def pair_loss(name, function, second=anything, jumps=False):
    @draws(name)
    def draw(p):
        x = p.some()
        target, reduction, real = p.partner(x, second), p.below(3), p.real(0.2, 2)
        if jumps and target == x:
            raise Rejected("equal throughout")
        p.step(name, [x, target], lambda x, target: function(x, target, real, reduction=REDUCTIONS[reduction]),
               jumps=jumps, subtracts=True, cancels=True, variant=reduction, real=real)


def broadcasting(loss):
    return lambda x, target, real, **words: loss(*torch.broadcast_tensors(x, target), **words)


def within_one(x):
    return not x.numel() or 0.02 < x.min().item() and x.max().item() < 0.98


pair_loss("mse_loss", lambda x, target, real, **words: F.mse_loss(x, target, **words))
pair_loss("l1_loss", lambda x, target, real, **words: F.l1_loss(x, target, **words), jumps=True)
pair_loss("huber_loss", lambda x, target, real, **words: F.huber_loss(x, target, delta=real, **words),
          jumps=True)
pair_loss("bce_with_logits", broadcasting(F.binary_cross_entropy_with_logits), within_one)
pair_loss("kl_div", broadcasting(F.kl_div), positive)
