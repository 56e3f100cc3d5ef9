"""A random program: inputs and steps, which PyTorch runs in float64 while it is built, and runs again disturbed."""
import numpy as np
import torch

from kinks import Kinks, Rejected

LARGEST = 1e4  # number of a value: larger ones end in numbers that say nothing
LAYOUTS = {"dense": 0, "transposed": 1, "stepped": 2, "offset": 3, "expanded": 4}


def largest(tensor):
    return tensor.abs().max().item() if tensor.numel() else 0.0


def is_float(tensor):
    return tensor.dtype == torch.float64


def dtype_name(tensor):
    """float64 is "float": whatever the dtype of the run."""
    return "float" if is_float(tensor) else str(tensor.dtype).removeprefix("torch.")


def word(value):
    if isinstance(value, (list, tuple)):
        return ",".join(map(word, value))
    return str(int(value)) if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def line(kind, /, **words):
    return " ".join([kind] + [f"{key}={word(value)}" for key, value in words.items()])


class Disturb:
    """Errors of that size, and of at least half of it, as parts of numbers."""
    def __init__(self, size):
        self.size = size

    def errors(self, like):
        random = 2 * torch.rand_like(like) - 1
        return self.size / 2 * (random + random.sign())

    def round(self, tensor):
        return tensor * (1 + self.errors(tensor))

    def add(self, tensor, scale):
        """Errors of that size as parts of `scale`."""
        return tensor + scale * self.errors(tensor)


class Input:
    gives = 1

    def __init__(self, numbers, dtype, layout, gradient):
        self.numbers, self.gradient = numbers, gradient
        self.line = line("input", dtype=dtype, layout=LAYOUTS[layout], gradient=gradient)
        self.dtype = torch.float64 if dtype == "float" else getattr(torch, dtype)

    def tensor(self):
        return torch.from_numpy(self.numbers.copy()).to(self.dtype).requires_grad_(self.gradient)


class Step:
    """chooses: the inputs that are not to be disturbed. subtracts: results may be small differences of numbers as large
    as the first input's; cancels: gradients may be small differences of numbers so many times as large as those of the
    results."""
    def __init__(self, name, inputs, function, words, chooses=(), subtracts=False, cancels=False):
        self.name, self.inputs, self.function, self.words = name, inputs, function, words
        self.chooses, self.subtracts, self.cancels, self.gives = chooses, subtracts, cancels, 0

    @property
    def line(self):
        return line("step " + self.name, **{"in": [-1 if i is None else i for i in self.inputs]}, gives=self.gives,
                    **self.words)

    def run(self, values, size=0.0):
        """A list; where the function gives an input as it is, a view of it. All that goes in and its gradients are
        disturbed."""
        disturb, arriving = Disturb(size), [torch.zeros((), dtype=torch.float64)]
        inputs = [None if i is None else self.enter(values[i], i in self.chooses, disturb, arriving)
                  for i in self.inputs]
        results = self.function(*inputs)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        for k, y in enumerate(results):
            if any(y is x for x in inputs):
                y = results[k] = y.view_as(y)
            if size and is_float(y):
                if self.subtracts:
                    y = results[k] = disturb.add(y, largest(inputs[0]))
                if self.cancels and y.requires_grad:
                    y.register_hook(lambda gradient: note(arriving, gradient))
        return results

    def enter(self, tensor, chosen, disturb, arriving):
        if disturb.size == 0 or not is_float(tensor):
            return tensor
        tensor = tensor.view_as(tensor) if chosen else disturb.round(tensor)
        if tensor.requires_grad:
            tensor.register_hook(lambda gradient: None if gradient is None else
                                 disturb.add(disturb.round(gradient), self.cancels * arriving[0]))
        return tensor


def note(arriving, gradient):
    """None is a gradient that nothing depends on. What is noted has a graph: errors follow the gradients that
    they are of."""
    if gradient is not None and gradient.numel():
        arriving[0] = torch.maximum(arriving[0], gradient.abs().max())


class Program:
    sums = 1.0  # how many more roundings its sums have than short ones

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.words = {"seed": seed}  # of the line "program"
        self.items = []  # inputs and steps
        self.values = []  # of the run while it is built
        self.exact = set()  # the values whose equal numbers are equal in every dtype

    def normal(self, shape):
        """Random numbers that float32 holds."""
        return np.array(self.random.normal(size=shape), dtype=np.float32).astype(np.float64)

    def input(self, numbers, dtype="float", layout="dense", gradient=False, exact=False):
        """The number of the new value. Floats become such as float32 holds. exact: some are equal."""
        numbers = np.array(numbers, dtype=np.float32 if dtype == "float" else np.float64).astype(np.float64)
        if layout == "expanded" and numbers.ndim and len(numbers):
            numbers[:] = numbers[:1]
        self.items.append(Input(numbers, dtype, layout, gradient))
        self.values.append(self.items[-1].tensor())
        if exact:
            self.exact.add(len(self.values) - 1)
        return len(self.values) - 1

    def step(self, name, inputs, function, chooses=False, jumps=False, subtracts=False, cancels=False, **words):
        """Runs the function on the values of these numbers (None: absent) and gives the number of its first result.
        chooses: it moves numbers about or picks some, and so rounds nothing. jumps: its derivative does where numbers
        are equal. subtracts, cancels: as a Step says. Rejected where a result is too large, or where a small change of
        the inputs would make it jump."""
        present = {i for i in inputs if i is not None}
        chosen = present if chooses else present & self.exact if jumps else set()
        item = Step(name, inputs, function, words, chosen, subtracts, cancels)
        with Kinks():
            results = item.run(self.values)
        for result in results:
            if is_float(result) and not largest(result) < LARGEST:  # NaN is not
                raise Rejected(f"{name} gives large numbers")
        item.gives = len(results)
        self.items.append(item)
        self.values += results
        first = len(self.values) - len(results)
        if chooses and present <= self.exact:
            self.exact.update(range(first, len(self.values)))
        return first

    def refuse(self, name, inputs, function, **words):
        """A step that PyTorch refuses, and rapt must too. It gives no value. Rejected if PyTorch does it."""
        item = Step(name, inputs, function, {**words, "refused": True})
        try:
            item.run(self.values)
        except (RuntimeError, IndexError, ValueError, TypeError):
            self.items.append(item)
            return
        raise Rejected(f"{name} is not refused")

    def mark(self):
        return len(self.items), len(self.values)

    def forget(self, mark):
        """Takes back what came after the mark."""
        del self.items[mark[0]:], self.values[mark[1]:]
        self.exact = {i for i in self.exact if i < mark[1]}

    def run(self, size=0.0, given=None):
        """All values, where what steps take is disturbed so much; and the inputs that want a gradient, by number.
        given: tensors for these."""
        values, leaves = [], {}
        for item in self.items:
            if isinstance(item, Input):
                leaf = (given or {}).get(len(values))
                leaf = item.tensor() if leaf is None else leaf
                if item.gradient:
                    leaves[len(values)] = leaf
                values.append(leaf)
            elif item.gives:
                values += item.run(values, size)
        return values, leaves

    def maker(self, number):
        """The item that gave a value."""
        first = 0
        for item in self.items:
            if first <= number < first + item.gives:
                return item
            first += item.gives

    def first_user(self, number):
        """The name of the first step that takes a value; "none" if nothing does."""
        return next((item.name for item in self.items if isinstance(item, Step) and number in item.inputs), "none")
