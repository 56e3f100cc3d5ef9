#!/usr/bin/env python3
"""Layers and ops of one's own in the Python package, and what somebody who knows PyTorch or numpy writes first."""
import ctypes
import os
import subprocess
import sys

from harness import fails, passed, rapt, root, test

try:
    import numpy
except ImportError as missing:
    numpy = print(f"left out: numpy's part ({missing})")


class Scaled(rapt.Linear):
    def __call__(self, x):
        return super().__call__(x) * 100


class Doubled(rapt.AdditiveAttention):
    def __call__(self, queries, keys, values, **mask):
        return super().__call__(queries, keys, values, **mask) * 2


@test
def a_call_of_ones_own_is_not_passed_over():
    """C runs the layers of a Sequential, and knows nothing of what Python makes of them."""
    x, expected = rapt.ones((1, 2)), "Scaled has a __call__ of its own, which rapt.Sequential does not run"
    for layers in ([Scaled(2, 2)], [rapt.Linear(2, 2), rapt.Sequential(Scaled(2, 2))]):
        model = rapt.Sequential(*layers)
        fails(expected, model, x, kind=TypeError)
        assert rapt.SGD(model).steps == 0 and len(model.parameters()) == 2 * len(layers)
    fails("Doubled has a __call__ of its own, which rapt.MultiHeadAttention does not run", rapt.MultiHeadAttention, 8,
          2, pooling=Doubled(4, 4, 6), kind=TypeError)

    class Named(rapt.Linear):
        def size(self):
            return len(self.parameters())

    assert rapt.Sequential(Named(2, 3))(x).shape == (1, 3)


@test
def a_vjp_says_something_of_each_input():
    def loss(x, y, vjp):
        return rapt.Op("product", lambda call, x, y: x * y, vjp)(x, y).sum()

    x = rapt.ones(2).require_gradient()
    for count, vjp in ((1, lambda call, g: g), (1, lambda call, g: (g,)), (0, lambda call, g: ())):
        fails(f"product: its vjp gave {count} of the gradients of 2 inputs; None where there is none",
              loss(x, x, vjp).backward, kind=TypeError)
    loss(x, x, lambda call, g: (None, None)).backward()
    assert x.gradient is None
    loss(x, rapt.ones(2), lambda call, g: (3 * g, None)).backward()
    assert x.gradient.tolist() == [3, 3]


@test
def threads_are_a_number():
    number = rapt.get_threads()
    rapt.set_threads(1)
    assert rapt.get_threads() == 1
    fails("set_threads: 0 threads", rapt.set_threads, 0)
    fails("a whole number expected, not 1.5", rapt.set_threads, 1.5, kind=TypeError)
    assert rapt.get_threads() == 1
    rapt.set_threads(number)
    assert rapt.get_threads() == number


@test
def a_seed_is_one_number():
    assert "generator" in rapt.seed.__doc__
    for arguments in ((), (1, 2)):
        fails("seed()", rapt.seed, *arguments, kind=TypeError)
    drawn = [(rapt.seed(3), rapt.rand(2).tolist())[1] for _ in range(2)]
    assert drawn[0] == drawn[1]


@test
def options_that_are_not_there_are_told_with_those_that_are():
    fails("Adam has no lr; there are learning_rate, beta1, beta2, epsilon, weight_decay", rapt.Adam, rapt.Linear(1, 1),
          lr=0.1, kind=TypeError)
    fails("Schedule has no warmup; there are kind, warm_up", rapt.Schedule, "cosine", warmup=2, kind=TypeError)


@test
def a_number_is_printed_as_one():
    loss = rapt.tensor(0.25)
    assert f"{loss:.3f}" == "0.250" and f"{rapt.tensor([[7]]):3d}" == "  7" and f"{loss}" == str(loss)
    fails("one element expected", format, rapt.ones(2), ".3f")


@test
def what_a_mask_hides_is_no_number():
    if not numpy:
        return
    hidden, open_ = (numpy.ma.array([1.0, 2.0], mask=mask) for mask in ([False, True], [False, False]))
    for make in (rapt.wrap, rapt.tensor, rapt.ones(2, rapt.float64).__add__):
        fails("MaskedArray hides elements", make, hidden)
    assert rapt.tensor(open_).tolist() == rapt.tensor(hidden.filled(2)).tolist() == [1, 2]


@test
def bytes_that_are_no_truth_values_are_told():
    """As those of a picture's mask of 0 and 255, whose view numpy makes without a look: their sum was 257."""
    if not numpy:
        return
    mask = numpy.array([[2, 0], [255, 1]], "u1")
    for array in (mask.view("?"), mask.view("?").T, mask.view("?")[:, 0]):
        for make in (rapt.wrap, rapt.tensor):
            fails("elements of bool that are neither 0 nor 1; `array != 0` makes an array of them", make, array)
    for array in (mask != 0, mask.view("?")[:, 1], mask.view("?")[:0], (mask > 1)[::-1]):
        assert rapt.tensor(array).tolist() == array.tolist()
    assert rapt.wrap(mask.view("?")[:, 1]).sum().item() == 1


@test
def what_is_no_module_is_told_with_the_cure():
    layer = rapt.Linear(2, 2)

    class Own:
        def __init__(self):
            self.layer = layer

    for value, name in ((Own(), "Own"), (rapt.relu, "function"), ([layer], "list")):
        fails(f"a rapt.Module expected, not {name}; rapt.Activation makes one of an op, and of a class of your own the "
              "layers that it keeps are given", rapt.Sequential, layer, value, kind=TypeError)
    fails("a rapt.Module expected, not dict; it is the module that is given, not its parameters", rapt.Adam,
          layer.parameters(), kind=TypeError)


@test
def a_base_that_was_forgotten_is_named():
    class Forgetful(rapt.Linear):
        def __init__(self):
            self.scale = 2

    layer, expected = Forgetful(), "Forgetful.__init__ has to call super().__init__(...)"
    for use in (lambda: layer(rapt.ones((1, 2))), layer.train, layer.parameters, lambda: rapt.Sequential(layer),
                lambda: rapt.Adam(layer, learning_rate=0.1)):
        fails(expected, use, kind=AttributeError)
    fails("'Forgetful' object has no attribute 'bias'", lambda: layer.bias, kind=AttributeError)


@test
def help_says_what_there_is():
    assert all("learning_rate" in kind.__doc__ for kind in (rapt.Adam, rapt.SGD, rapt.Muon)), rapt.Adam.__doc__
    assert "warm_up_stable_decay" in rapt.Schedule.__doc__ and "inputs" in rapt.Linear.__doc__


@test
def what_the_end_of_the_stack_interrupts_leaves_no_scope_open():
    """And as a scope that stays open nevertheless ends before Python does, with arrays that its tensors are in."""
    program = f"""import array, ctypes, sys; sys.path.insert(0, {os.path.join(root, 'python')!r}); import rapt
class Array:
    numbers = (ctypes.c_float * 4).from_buffer(array.array("f", [1, 2, 3, 4]))
    __array_interface__ = {{"version": 3, "shape": (4,), "typestr": rapt._tensor._ORDER + "f4",
                           "data": (ctypes.addressof(numbers), False)}}
weight, x, y = rapt.ones((4,)).require_gradient(), rapt.wrap(Array()), rapt.ones((2, 4))
def tree(depth):
    product = x * weight
    return tree(depth + 1) + product
def deep(depth, function):
    return deep(depth - 1, function) if depth else function()
def mark():
    ended = rapt.C.scope_begin()
    rapt.C.scope_end(ended)
    return getattr(ended, "value", ended)
sys.unraisablehook = lambda told: None  # of what is let go there
before = mark()
kinds = RecursionError
for function in (lambda: tree(0), lambda: y.sort(), lambda: y.split(0, (1, 1)), lambda: y.T.tolist(),
                 lambda: (y * weight).sum().backward(), lambda: rapt.gradients((y * weight).sum(), [weight])):
    sys.setrecursionlimit(120)
    for depth in range(60, 120):
        try:
            deep(depth, function)
        except kinds:
            pass
    sys.setrecursionlimit(1000)
    assert mark() == before, mark()
    kinds = RecursionError, ctypes.ArgumentError
rapt.C.scope_begin()  # and nobody ends it
x = rapt.C.mul(x._handle, weight._handle)  # which alone has the array now
"""
    ended = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE)
    assert ended.returncode == 0 and not ended.stderr, ended


@test
def what_is_frozen_gets_no_gradient_and_is_passed_over():
    rapt.seed(1)
    gpt = rapt.GPT(5, 4, 8, 2, 2)
    optimizer, tokens = rapt.SGD(gpt, learning_rate=0.1), rapt.tensor([[0, 1, 2, 3]])
    everything = gpt.parameters()
    assert gpt.freeze("*") == len(everything)
    thawed = {name for name in everything if name.startswith("transformer.h.1.")}
    assert gpt.freeze("transformer.h.1.*", False) == len(thawed) > 0
    before = {name: tensor.tolist() for name, tensor in everything.items()}
    gpt.loss(tokens, tokens).backward()
    assert {name for name, tensor in everything.items() if tensor.gradient is not None} == thawed
    optimizer.step()
    assert {name for name, tensor in everything.items() if tensor.tolist() != before[name]} == thawed
    fails("no name of the parameters of GPT matches 'h.1.*'", gpt.freeze, "h.1.*")
    fails("freeze: pattern: a text expected, not 1", gpt.freeze, 1, kind=TypeError)
    fails("freeze: frozen: True or False expected, not 'no'", gpt.freeze, "*", "no", kind=TypeError)


@test
def a_leaf_becomes_a_constant():
    x = rapt.ones((2,)).require_gradient()
    (x * x).sum().backward()
    assert x.gradient.tolist() == [2, 2] and x.refuse_gradient() is x
    assert x.gradient is None and not x.requires_gradient and not (x * x).requires_gradient
    assert (x.require_gradient() * 2).requires_gradient
    fails("refuse_gradient: the tensor is the result of a recorded op", (x * 2).refuse_gradient)


@test
def a_message_names_what_python_has():
    class Odd:  # amid bytes
        numbers = (ctypes.c_char * 9)()
        __array_interface__ = {"version": 3, "shape": (2,), "typestr": rapt._tensor._ORDER + "f4",
                               "data": (ctypes.addressof(numbers) | 1, False)}

    fails("copy it with rapt.tensor", rapt.wrap, Odd())
    fails("(Module.train)", rapt.BatchNorm(2), rapt.ones((1, 2)))


print(f"{len(passed)} tests passed")
