"""What must come out of a program: values, gradients, and gradients of gradients; and how far off a result may be.

The program runs again with every tensor and every gradient in it disturbed by random relative errors, as rounding does,
of 2⁻²⁴ (float32's) and of 2⁻⁴⁰. How many of these errors a result is off then is taken for the number of roundings that
it suffers in any dtype. It may be off by MARGIN times as many, and by SLACK roundings of its largest number, or of a
tenth of those that a gradient began from (more where tensors are large and sums long). Both dtypes are compared with
the float64 run of the same float32 numbers, so that nobody else's rounding counts. A program is rejected where this
would allow more than WORST roundings of the largest number: what is so much enlarged is not measured well. In 20,500
programs (24 November 2026, PyTorch 2.6) the largest difference was 1.08 times what is allowed, in a second derivative
of attention whose weights are divided by a sum of 0.0075 (seed 312109: by differences in 60 digits rapt and PyTorch are
each 3.8e-12 off it, one above and one below), and half of it in all others.
"""
import numpy as np
import torch

from kinks import Rejected
from program import LAYOUTS, Input, Step, dtype_name, is_float, largest, line

MARGIN, SLACK, WORST = 64, 64, 5000
SIZES = (2.0 ** -24, 2.0 ** -24, 2.0 ** -40, 2.0 ** -40)  # of the disturbances
ROUNDING = {"float32": 2.0 ** -24, "float64": 2.0 ** -53}
UNDERFLOW = 1e-35  # in float32


class Root:
    """Where gradients start: a value, and the gradient there."""
    def __init__(self, program, value, layout):
        shape = tuple(program.values[value].shape)
        self.value, self.layout = value, layout
        self.numbers = program.normal(shape)
        if layout == LAYOUTS["expanded"] and len(self.numbers):
            self.numbers[:] = self.numbers[:1]


def gradients(roots, seeds, inputs, graph):
    """Zeros where nothing depends on an input. PyTorch's tensors of zeros without memory become such as have some."""
    found = torch.autograd.grad(roots, inputs, seeds, create_graph=graph, allow_unused=True)
    return [torch.zeros_like(x) if g is None or g._is_zerotensor() else g for x, g in zip(inputs, found)]


class Expected:
    """Named results of a program: ("value", 3), ("gradient", 0), ("second", 0), ("seed", 1)."""
    def __init__(self, program, roots, inner, directions):
        self.program, self.roots, self.inner, self.directions = program, roots, inner, directions
        self.results = self.run(0.0)
        if not all(result.isfinite().all() for result in self.results.values()):
            raise Rejected("a gradient is not finite")
        self.roundings = self.measure()

    def run(self, size):
        program = self.program
        values, leaves = program.run(size)
        results = {("value", i): value.detach() for i, value in enumerate(values)
                   if not isinstance(program.maker(i), Input)}
        if not self.roots:
            return results
        wanted = {**leaves, **{i: values[i] for i in self.inner}}
        roots = [self.enter(values[root.value], size) for root in self.roots]
        seeds = [torch.from_numpy(root.numbers).requires_grad_(bool(self.directions)) for root in self.roots]
        first = gradients(roots, seeds, list(wanted.values()), bool(self.directions))
        results.update({("gradient", i): gradient.detach() for i, gradient in zip(wanted, first)})
        if self.directions:
            pairs = [(g, torch.from_numpy(self.directions[i])) for i, g in zip(wanted, first)
                     if i in self.directions and g.requires_grad]
            if pairs:
                names = [("second", i) for i in leaves] + [("seed", k) for k in range(len(seeds))]
                second = gradients(*zip(*pairs), [*leaves.values(), *seeds], False)
                results.update(zip(names, (gradient.detach() for gradient in second)))
        return results

    def enter(self, value, size):
        """A root, as the input of a step."""
        return Step("root", [0], lambda x: x, {}).run([value], size)[0]

    def measure(self):
        """How many roundings of the number 1 each floating result may be off."""
        roundings = {name: 0.0 for name in self.results}
        for size in SIZES:
            for name, result in self.run(size).items():
                if is_float(result) and result.numel():
                    difference = (result - self.results[name]).abs().max().item()
                    roundings[name] = max(roundings[name], MARGIN * difference / size)
        start = max((float(np.abs(numbers).max(initial=0)) for numbers in [root.numbers for root in self.roots]
                     + list(self.directions.values())), default=0.0)
        for name, result in self.results.items():
            if is_float(result):
                size = max(largest(result), 0 if name[0] == "value" else start / 10)
                roundings[name] += SLACK * self.program.sums * size
                if roundings[name] > WORST * max(size, self.entered(name) / 10):
                    raise Rejected("ill-conditioned")
        return roundings

    def allowed(self, name):
        return {dtype: rounding * self.roundings[name] + UNDERFLOW if is_float(self.results[name]) else 0.0
                for dtype, rounding in ROUNDING.items()}

    def entered(self, name):
        """The largest number from which a value was made."""
        inputs = self.program.maker(name[1]).inputs if name[0] == "value" else ()
        values = [self.program.values[i] for i in inputs if i is not None]
        return max((largest(value[value.isfinite()]) for value in values if is_float(value)), default=0.0)

    def write(self, stream):
        for root in self.roots:
            write_numbers(stream, line("root", value=root.value, dtype="float", layout=root.layout), root.numbers)
        seconds = any(kind == "second" for kind, _ in self.results)
        for i, numbers in self.directions.items() if seconds else ():
            write_numbers(stream, line("direction", value=i, dtype="float"), numbers)
        for (kind, i), result in self.results.items():
            words = {"what": "second" if kind == "seed" else kind, "value": 0 if kind == "seed" else i,
                     "dtype": dtype_name(result)}
            if kind == "seed":
                words["root"] = i
            words["of"] = self.op_of(kind, i)
            words["inner"] = kind == "gradient" and i in self.inner
            words.update(self.allowed((kind, i)))
            write_numbers(stream, line("expect", **words), result.numpy())

    def op_of(self, kind, i):
        """The op that a result tells of."""
        if kind == "value":
            return self.program.maker(i).name
        return self.program.maker(self.roots[i].value).name if kind == "seed" else self.program.first_user(i)


def write_numbers(stream, words, numbers):
    stream.write(f"{words} shape={','.join(map(str, numbers.shape))}\n".encode())
    stream.write(np.ascontiguousarray(numbers, dtype=np.float64).tobytes())


def write(stream, program, expected):
    stream.write((line("program", **program.words) + "\n").encode())
    for item in program.items:
        if isinstance(item, Input):
            write_numbers(stream, item.line, item.numbers)
        else:
            stream.write((item.line + "\n").encode())
    expected.write(stream)
    stream.write(b"end\n")
    stream.flush()
