"""What a case is: a PyTorch module or a formula, its inputs, and what comes out of them, with all gradients.

Every number is drawn from a generator that is seeded by the names of the case and the number, in float32: the inputs of
the float64 run are the same numbers, and a new case changes no other.
"""
import copy
import zlib

import numpy as np
import torch

families = {}  # name of the file -> cases
LIMITS = {"float32": 1e-5, "float64": 1e-12}  # of the deviation


def deviation(actual, expected):
    """The largest difference, as a part of the largest absolute value that is expected."""
    if actual.shape != expected.shape:
        return np.inf
    largest = np.abs(expected).max(initial=0)
    difference = np.abs(actual.astype(np.float64) - expected).max(initial=0)
    return difference / largest if difference > 0 else 0.0


class Case:
    def __init__(self, name, module, forward, inputs, constants, weights):
        self.name, self.forward = name, forward
        self.module = torch.nn.Module() if module is None else module
        self.inputs = {key: self.draw("inputs/" + key, value) for key, value in inputs.items()}
        self.constants = {key: self.draw("inputs/" + key, value) for key, value in constants.items()}
        self.weights = {key: self.draw("weights/" + key, weights.get(key, weight(key, *value.shape)))
                        for key, value in self.module.state_dict().items()}
        assert not self.inputs.keys() & self.weights.keys()  # their gradients share one folder

    def draw(self, what, value):
        """value is an array (or something like it), or a function of a generator."""
        if callable(value):
            value = value(np.random.RandomState(zlib.crc32(f"{self.name}/{what}".encode())))
        value = np.asarray(value)
        return value.astype(np.float32) if value.dtype.kind == "f" else value

    def run(self, dtype, weights=None):
        """Outputs and gradients by name, as arrays of that dtype. The weights may be others than the case's own."""
        as_tensor = lambda array: torch.from_numpy(array.copy()).to(dtype if array.dtype.kind == "f" else None)
        module = copy.deepcopy(self.module).to(dtype)
        module.load_state_dict({key: as_tensor(value) for key, value in (weights or self.weights).items()}, strict=True)
        inputs = {key: as_tensor(value) for key, value in self.inputs.items()}
        for tensor in inputs.values():
            tensor.requires_grad_(tensor.is_floating_point())
        constants = {key: as_tensor(value) for key, value in self.constants.items()}
        outputs = self.forward(module, **inputs, **constants)
        if torch.is_tensor(outputs):
            outputs = {"y": outputs}
        seeds = {key: self.draw("seeds/" + key, normal(*output.shape))
                 for key, output in outputs.items() if output.requires_grad}
        torch.autograd.backward([outputs[key] for key in seeds], [as_tensor(seed) for seed in seeds.values()])
        leaves = {**inputs, **dict(module.named_parameters())}
        return ({key: output.detach().numpy() for key, output in outputs.items()}, seeds,
                {key: leaf.grad.numpy() for key, leaf in leaves.items() if leaf.grad is not None})

    def arrays(self):
        """All of the case as the fixture holds it."""
        arrays = {f"{self.name}/inputs/{key}": value for key, value in {**self.inputs, **self.constants}.items()}
        arrays.update({f"{self.name}/weights/{key}": value for key, value in self.weights.items()})
        for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
            outputs, seeds, gradients = self.run(dtype)
            arrays.update({f"{self.name}/seeds/{key}": value for key, value in seeds.items()})
            arrays.update({f"{self.name}/{name}/outputs/{key}": value for key, value in outputs.items()})
            arrays.update({f"{self.name}/{name}/gradients/{key}": value for key, value in gradients.items()})
        return arrays


def family(name):
    """A function that puts cases into the fixture of that name."""
    cases = families.setdefault(name, [])

    def add(case, module=None, forward=None, constants={}, weights={}, **inputs):
        """forward gets the module, the inputs and the constants by name, and gives a tensor (named y) or named ones.
        None: it is the module's, and gets the inputs in their order. Floating inputs get a gradient, constants do not.
        weights: those that are not to be drawn as usual."""
        if forward is None:
            forward = lambda module, **inputs: module(*inputs.values())
        cases.append(Case(case, module, forward, inputs, constants, weights))

    return add


def normal(*shape):
    return lambda random: random.normal(size=shape)


def weight(name, *shape):
    """Of the size that trained weights have: norms' scales near 1, small biases."""
    middle, spread = (0, 0.2) if "bias" in name.split(".")[-1] else (1, 0.3) if len(shape) == 1 else (0, 0.5)
    return lambda random: random.uniform(middle - spread, middle + spread, size=shape)


def integers(low, high, *shape):
    return lambda random: random.randint(low, high, size=shape).astype(np.int64)
