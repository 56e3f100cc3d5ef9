"""Places where a function has a step or a corner, or is very steep: rows that are all but constant, and normalised. No
program comes near one: there a rounding makes another result."""
import numpy as np
import torch
from torch.overrides import TorchFunctionMode

NEAR = 3e-5  # as a part of the largest number
SPREAD = 1e-2  # variance


class Rejected(Exception):
    """A random choice that cannot be part of a program."""


def differences(a, b, *rest, **words):
    return [torch.as_tensor(a) - b]


def from_zero(x, *rest, **words):
    return [x]


def from_bounds(x, *bounds, min=None, max=None):
    low, high = (*bounds, None, None)[:2] if bounds else (min, max)
    return [x - bound for bound in (low, high) if bound is not None]


def from_largest(x, dim=(), keepdim=False):
    return [x - torch.amax(x, dim, keepdim=True)]


def from_smallest(x, dim=(), keepdim=False):
    return [x - torch.amin(x, dim, keepdim=True)]


def from_neighbours(x, *rest, dim=-1, **words):
    return [torch.from_numpy(np.sort(x.detach().numpy(), axis=dim)).diff(dim=dim)]


def from_delta(x, target, delta=1.0, **words):
    return [(x - target).abs() - delta]


DISTANCES = {"relu": from_zero, "abs": from_zero, "sign": from_zero, "leaky_relu": from_zero,
             "clamp": from_bounds, "maximum": differences, "minimum": differences,
             "amax": from_largest, "argmax": from_largest, "amin": from_smallest, "argmin": from_smallest,
             "sort": from_neighbours, "argsort": from_neighbours, "l1_loss": differences,
             "huber_loss": from_delta,
             **{name: differences for name in ("eq", "ne", "lt", "le", "gt", "ge")}}


class Kinks(TorchFunctionMode):
    """Rejects where PyTorch is called closer to a kink than NEAR. On a kink is allowed: numbers that are equal because
    they are one number are so in every dtype, and there both sides must do the same."""
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "").strip("_")
        if name in DISTANCES:
            self.check(DISTANCES[name], args, kwargs)
        if name == "layer_norm":
            self.check_rows(args[0])
        return function(*args, **kwargs)

    def check_rows(self, x):
        if x.numel() and x.shape[-1] > 1 and x.var(-1).min().item() < SPREAD:
            raise Rejected("nothing to normalise")

    def check(self, distances, args, kwargs):
        numbers = [x for x in (*args, *kwargs.values()) if torch.is_tensor(x) and x.is_floating_point()]
        if not numbers or not all(x.numel() for x in numbers):
            return
        with torch.no_grad():
            size = max(x[x.isfinite()].abs().max().item() if x.isfinite().any() else 0 for x in numbers)
            for distance in distances(*args, **kwargs):
                distance = distance[distance.isfinite() & (distance != 0)].abs()
                if distance.numel() and distance.min().item() < NEAR * size:
                    raise Rejected("near a kink")
