"""Random choices for programs: shapes, inputs, and values that are there already."""
import numpy as np
import torch

from kinks import Rejected
from program import LAYOUTS, Program, dtype_name, largest

SIZES, CHANCES = (0, 1, 2, 3, 4, 5, 7), (0.02, 0.18, 0.25, 0.25, 0.15, 0.1, 0.05)
INTEGERS = "int64", "int32", "uint8"


def anything(tensor):
    return True


def positive(tensor):
    return not tensor.numel() or tensor.min().item() > 0.3


def nonzero(tensor):
    return not tensor.numel() or tensor.abs().min().item() > 0.3


def below(limit):
    return lambda tensor: largest(tensor) < limit


moderate = below(4)  # what layers take that would else be saturated


class Draw(Program):
    layouts = list(LAYOUTS)
    most = 400  # elements of a tensor
    large = False

    def grow(self):
        """From now on tensors are so large that their work is cut into pieces."""
        self.large, self.most, self.sums = True, 20000, 7.0  # the root of 20000 / 400
        self.words["large"] = True

    def fits_with(self, a, b):
        """Do two tensors broadcast, to none too large?"""
        try:
            return np.prod(torch.broadcast_shapes(a.shape, b.shape)) <= self.most
        except RuntimeError:
            return False

    def chance(self, probability):
        return self.random.random() < probability

    def below(self, limit):
        """0 … limit − 1"""
        return int(self.random.integers(limit))

    def between(self, low, high):
        """low … high"""
        return int(self.random.integers(low, high + 1))

    def one(self, choices):
        return choices[self.below(len(choices))]

    def real(self, low, high):
        """A number that float32 holds."""
        return float(np.float32(self.random.uniform(low, high)))

    def size(self):
        return int(self.random.choice(SIZES[1:], p=np.array(CHANCES[1:]) / sum(CHANCES[1:])))

    def shape(self, low=0, high=5):
        shape = [int(self.random.choice(SIZES, p=CHANCES)) for _ in range(self.between(low, high))]
        for axis in range(len(shape)):
            if self.chance(0.5 if self.large else 0.01):
                shape[axis] = self.between(17, 150)
        while np.prod(shape) > self.most:
            shape[int(np.argmax(shape))] //= 2
        return shape

    def axis(self, tensor, more=0):
        """Of a tensor, from the front or from the end."""
        rank = tensor.dim() + more
        if rank == 0:
            raise Rejected("no axis")
        return self.between(-rank, rank - 1)

    def axes(self, tensor):
        """Some axes; none stands for all."""
        chosen = self.random.permutation(tensor.dim())[:self.between(0, tensor.dim())]
        return [int(axis) - (tensor.dim() if self.chance(0.3) else 0) for axis in chosen]

    def numbers(self, shape, domain=anything):
        if domain in (positive, nonzero):
            numbers = self.random.uniform(0.4, 2.5, shape)
            return numbers if domain is positive else numbers * self.random.choice([-1, 1], shape)
        scale = 10 ** self.random.uniform(-3, 3) if domain is anything and self.chance(0.04) else 1
        return self.random.normal(size=shape) * scale

    def leaf(self, shape, domain=anything, dtype="float", gradient=None):
        """A new input. Now and then its numbers are multiples of ½, among which there are equal ones."""
        layout = "dense" if self.chance(0.5) else self.one(self.layouts)
        if dtype == "bool":
            return self.input(self.random.integers(0, 2, shape), dtype, layout)
        if dtype != "float":
            numbers = self.random.integers(0 if dtype == "uint8" else -6, 9, shape)
            return self.input(np.where(numbers == 0, 3, numbers) if domain is nonzero else numbers, dtype, layout)
        exact = domain is anything and self.chance(0.08)
        numbers = self.random.integers(-4, 5, shape) / 2 if exact else self.numbers(shape, domain)
        gradient = self.chance(0.85) if gradient is None else gradient
        return self.input(numbers, "float", layout, gradient, exact)

    def weight(self, *shape):
        """A parameter of a module."""
        return self.input(self.random.normal(size=shape) * min(0.6, max(1, shape[-1]) ** -0.5), gradient=True)

    def indices(self, limit, shape):
        if limit == 0:
            raise Rejected("nothing to choose from")
        return self.input(self.random.integers(0, limit, shape), self.one(["int64", "int32"]))

    def find(self, fits):
        """A value that fits, often a late one; None if there is none."""
        found = [i for i, value in enumerate(self.values) if value.numel() <= 4 * self.most and fits(value)]
        if not found:
            return None
        return found[-1 - min(int(self.random.exponential(2)), len(found) - 1)] if self.chance(0.7) else self.one(found)

    def some(self, low=0, high=5, domain=anything, dtype="float"):
        """A value of some rank, more often one that is there than a new input."""
        fits = lambda t: low <= t.dim() <= high and dtype_name(t) == dtype and domain(t)
        found = self.find(fits) if self.chance(0.75) else None
        if found is not None:
            return found
        found = self.leaf(self.shape(low, high), domain, dtype)
        if not fits(self.values[found]):
            raise Rejected("out of the domain")
        return found

    def shaped(self, shape, domain=anything, dtype="float"):
        """A value of that shape."""
        fits = lambda t: list(t.shape) == list(shape) and dtype_name(t) == dtype and domain(t)
        found = self.find(fits) if self.chance(0.4) else None
        return self.leaf(shape, domain, dtype) if found is None else found

    def partner(self, value, domain=anything, dtype=None):
        """A value that broadcasts with another."""
        shape = [1 if self.chance(0.25) else size if size != 1 or self.chance(0.5) else self.size()
                 for size in self.values[value].shape]
        if self.chance(0.25):
            shape = shape[self.between(0, len(shape)):]
        elif self.chance(0.1) and len(shape) < 5:
            shape = [self.size()] + shape
        dtype = dtype or dtype_name(self.values[value])
        found = self.find(lambda t: dtype_name(t) == dtype and domain(t) and self.fits_with(t, self.values[value]))
        return found if found is not None and self.chance(0.4) else self.shaped(shape, domain, dtype)

    def turn(self, tensor_number):
        """Now and then the last two axes of a value change places twice, so that it lies transposed."""
        x = tensor_number
        if self.values[x].dim() < 2 or not self.chance(0.3):
            return x
        swap = lambda t: t.transpose(-1, -2)
        back = self.leaf(list(self.values[x].transpose(-1, -2).shape))
        return self.step("transpose", [back], swap, chooses=True, axes=[-1, -2])
