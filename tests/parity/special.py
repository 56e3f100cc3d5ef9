#!/usr/bin/env python3
"""Makes special.safetensors, the fixture of tests/test_special_values.c, from PyTorch 2.6, beside this script.

What PyTorch's functions give for numbers that are not ordinary (NaN, infinities, zeros of both signs, the largest, a
subnormal one) among some that are: for one tensor every number, for two tensors every pair, for rows every choice of
three. Names are DTYPE/inputs/{x,a,b,rows,targets}, and for each function NAME/DTYPE/y, /g0 and /g1, the gradients that
backward from 1, 2, 3, 1, 2, ... gives, and in float64 /h00, /h01, /h10 and /h11: what backward from these gradients
gives (h10: from g1 to input 0).
"""
import itertools
import os
import sys

sys.dont_write_bytecode = True
import numpy as np
import torch
from torch.nn import functional as F

import tensor_file

NAN, INFINITY = float("nan"), float("inf")


def singles(dtype):
    largest, smallest = torch.finfo(dtype).max, torch.finfo(dtype).tiny
    return [NAN, INFINITY, -INFINITY, 0.0, -0.0, largest, -largest, smallest / 4, 1.0, -1.0, 0.5, -2.5, 100.0]


def choices(dtype):
    largest = torch.finfo(dtype).max
    return list(itertools.combinations_with_replacement(
        [NAN, INFINITY, -INFINITY, 0.0, -0.0, largest, -largest, 1.0, -2.5], 3))


of_one = {
    "neg": torch.neg, "abs": torch.abs, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
    "sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "erf": torch.erf,
    "relu": torch.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu,
    "expm1": torch.expm1, "log1p": torch.log1p, "softplus": F.softplus, "mish": F.mish, "sign": torch.sign,
    "floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
    "elu": lambda x: F.elu(x, 1.5),
    "clamp": lambda x: torch.clamp(x, -1, 1), "clamp_below": lambda x: torch.clamp(x, min=0),
    "add_scalar": lambda x: x + 1.5, "mul_scalar": lambda x: x * 3, "mul_scalar_0": lambda x: x * 0.0,
    "maximum_scalar": lambda x: torch.maximum(x, torch.tensor(0.5, dtype=x.dtype)),
    "minimum_scalar": lambda x: torch.minimum(x, torch.tensor(0.5, dtype=x.dtype)),
    "masked_fill": lambda x: x.masked_fill(x > 0, 7.0),
    **{f"pow_scalar_{p:g}": lambda x, p=p: x ** p for p in (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, -2.0, 2.5)},
}
none = {"reduction": "none"}
of_two = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "pow": torch.pow,
    "maximum": torch.maximum, "minimum": torch.minimum, "where": lambda a, b: torch.where(a > 0, a, b),
    "equal": torch.eq, "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le, "greater": torch.gt,
    "greater_equal": torch.ge, "mse_loss": lambda a, b: F.mse_loss(a, b, **none),
    "l1_loss": lambda a, b: F.l1_loss(a, b, **none), "huber_loss": lambda a, b: F.huber_loss(a, b, **none),
    "bce_with_logits": lambda a, b: F.binary_cross_entropy_with_logits(a, b, **none),
    "kl_div": lambda a, b: F.kl_div(a, b, **none),
}
of_rows = {
    "sum": lambda x, _: x.sum(-1), "mean": lambda x, _: x.mean(-1), "var": lambda x, _: x.var(-1),
    "max": lambda x, _: x.amax(-1), "min": lambda x, _: x.amin(-1), "argmax": lambda x, _: x.argmax(-1),
    "logsumexp": lambda x, _: x.logsumexp(-1), "cumsum": lambda x, _: x.cumsum(-1),
    "argmin": lambda x, _: x.argmin(-1), "prod": lambda x, _: x.prod(-1), "std": lambda x, _: x.std(-1),
    "cumprod": lambda x, _: x.cumprod(-1), "sort": lambda x, _: x.sort(dim=-1, stable=True)[0],
    "argsort": lambda x, _: x.argsort(dim=-1, descending=True, stable=True), "topk": lambda x, _: x.topk(2)[0],
    **{f"norm_{p:g}": lambda x, _, p=p: torch.linalg.vector_norm(x, p, -1)
       for p in (0.0, 0.5, 1.0, 2.0, 3.0, INFINITY, -1.0, -INFINITY)},
    "softmax": lambda x, _: x.softmax(-1), "log_softmax": lambda x, _: x.log_softmax(-1),
    "layer_normalize": lambda x, _: F.layer_norm(x, (3,), eps=1e-5),
    "rms_normalize": lambda x, _: F.rms_norm(x, (3,), eps=1e-5),
    "cross_entropy": lambda x, targets: F.cross_entropy(x, targets, **none),
    "cross_entropy_smoothed": lambda x, targets: F.cross_entropy(x, targets, label_smoothing=0.1, **none),
    "nll_loss": lambda x, targets: F.nll_loss(x, targets, **none),
}


def seeds(like):
    return (1 + torch.arange(like.numel()) % 3).to(like.dtype).reshape(like.shape)


def gradients(of, inputs):
    """Those of the tensor that it has a graph to; PyTorch may leave zeros out of memory."""
    if not of.requires_grad:
        return [None] * len(inputs)
    return [None if g is None else g + 0 if not g._is_zerotensor() else torch.zeros(g.shape, dtype=g.dtype)
            for g in torch.autograd.grad(of, inputs, seeds(of), create_graph=True, allow_unused=True)]


arrays = {}


def run(name, dtype, function, inputs, *constants):
    keep = lambda key, tensor: arrays.update({f"{name}/{str(dtype)[6:]}/{key}": tensor.detach().numpy()})
    inputs = [tensor.clone().requires_grad_() for tensor in inputs]
    y = function(*inputs, *constants)
    keep("y", y)
    for i, g in enumerate(gradients(y, inputs)):
        if g is None:
            continue
        keep(f"g{i}", g)
        for j, h in enumerate(gradients(g, inputs) if dtype == torch.float64 else []):
            if h is not None:
                keep(f"h{i}{j}", h)


torch.set_num_threads(1)
for dtype in (torch.float32, torch.float64):
    x, rows = torch.tensor(singles(dtype), dtype=dtype), torch.tensor(choices(dtype), dtype=dtype)
    a, b = x.repeat_interleave(len(x)), x.repeat(len(x))
    targets = torch.arange(len(rows)) % 3
    for key, tensor in {"x": x, "a": a, "b": b, "rows": rows, "targets": targets}.items():
        arrays[f"{str(dtype)[6:]}/inputs/{key}"] = tensor.numpy()
    for name, function in of_one.items():
        run(name, dtype, function, [x])
    for name, function in of_two.items():
        run(name, dtype, function, [a, b])
    for name, function in of_rows.items():
        run(name, dtype, function, [rows], targets)

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "special.safetensors")
tensor_file.write(path, arrays, {"torch": torch.__version__})
print(f"{path}: {len(arrays)} tensors, {os.path.getsize(path)} bytes")
