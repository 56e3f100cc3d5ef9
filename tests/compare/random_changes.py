"""Changes in place between the steps of a program, and steps that must be refused."""
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

from expected import Expected, gradients
from kinks import Rejected
from program import is_float

# What sees and shares memory in the same way on both sides.
CHANGING = ("add", "sub", "mul", "div", "pow", "exp", "log", "sqrt", "tanh", "sigmoid", "relu", "gelu", "silu", "abs",
            "sum", "mean", "max", "softmax", "matmul", "cumsum", "where", "clamp", "mse_loss", "concat", "transpose",
            "permute", "slice", "select", "squeeze", "unsqueeze", "detach")


# --- changes in place ---

def without_graph(function):
    """Changes its first tensor, and gives it."""
    def change(target, *rest):
        with torch.no_grad():
            function(target, *rest)
        return target
    return change


def change(p):
    """Of a leaf, or of something outside the graph."""
    x = p.find(lambda t: is_float(t) and (not t.requires_grad or t.is_leaf))
    if x is None:
        raise Rejected("nothing to change")
    shape, number = p.values[x].shape, p.real(0.5, 1.5)
    source = p.find(lambda t: is_float(t) and t.dim() == len(shape)
                    and all(n in (1, m) for n, m in zip(t.shape, shape)))
    name, inputs, function = p.one([("fill", [x], lambda t: t.fill_(number)),
                                    ("scale_in_place", [x], lambda t: t.mul_(number)),
                                    ("copy", [x, source], lambda t, s: t.copy_(s)),
                                    ("add_in_place", [x, source], lambda t, s: t.add_(s, alpha=number))])
    p.step(name, inputs, without_graph(function), chooses=True, real=number)


class Changed(Expected):
    """The gradients are those of the numbers that the steps saw. PyTorch may refuse them, and so may rapt."""
    def __init__(self, program, roots):
        program.words.update(writes=True, refused=False)
        super().__init__(program, roots, [], {})
        try:
            values, leaves = program.run()
            gradients([values[root.value] for root in roots], [torch.from_numpy(root.numbers) for root in roots],
                      list(leaves.values()), False)
        except RuntimeError:
            program.words["refused"] = True

    def run(self, size):
        with saved_tensors_hooks(torch.clone, lambda saved: saved):  # a copy does not change
            return {name: result.clone() for name, result in super().run(size).items()}


# --- refusals ---

def misfit(p, x):
    """A value that does not broadcast with another."""
    shape = list(p.values[x].shape)
    if not shape or shape[-1] < 2:
        raise Rejected("all fits")
    return p.leaf([shape[-1] + 1])


def wrong_axis(p, x):
    return p.one([p.values[x].dim(), -p.values[x].dim() - 1])


def refuse_broadcast(p):
    x = p.some(1)
    name, function = p.one([("add", torch.add), ("mul", torch.mul), ("maximum", torch.maximum), ("pow", torch.pow)])
    p.refuse(name, [x, misfit(p, x)], function)


def refuse_product(p):
    x = p.some(1)
    size = p.values[x].shape[-1]
    p.refuse("matmul", [x, p.leaf([size + 1, 2])], torch.matmul)


def refuse_affine(p):
    x = p.some(1)
    p.refuse("affine", [x, p.leaf([3, p.values[x].shape[-1] + 1]), None], F.linear)


def refuse_axis(p):
    x = p.some(1)
    axis = wrong_axis(p, x)
    name, function = p.one([("softmax", lambda x: F.softmax(x, axis)), ("cumsum", lambda x: x.cumsum(axis)),
                            ("argmax", lambda x: x.argmax(axis)), ("select", lambda x: x.select(axis, 0)),
                            ("transpose", lambda x: x.transpose(axis, 0)), ("squeeze", lambda x: x.squeeze(axis))])
    p.refuse(name, [x], function, axis=axis, axes=[axis, 0], number=[0])


def refuse_axes(p):
    x = p.some(1)
    axes = p.one([[0, 0], [wrong_axis(p, x)]])
    name, function = p.one([("sum", lambda x: x.sum(axes)), ("max", lambda x: x.amax(axes)),
                            ("var", lambda x: x.var(axes)), ("flip", lambda x: x.flip(axes)),
                            ("permute", lambda x: x.permute(axes))])
    p.refuse(name, [x], function, axes=axes)


def refuse_shape(p):
    x = p.some(1)
    shape = [p.values[x].numel() + 1]
    name, function = p.one([("reshape", lambda x: x.reshape(shape)), ("expand", lambda x: x.expand(shape))])
    p.refuse(name, [x], function, number=shape)


def refuse_index(p):
    x = p.some(2, 2)
    rows = p.values[x].shape[0]
    index = p.input([p.one([rows, rows + 3, -1 - rows])], "int64")
    name, function = p.one([("embed", lambda x, i: F.embedding(i, x)),
                            ("index_select", lambda x, i: x.index_select(0, i)),
                            ("select", lambda x, i: x.select(0, i.item()))])
    p.refuse(name, [x, index], function, axis=0, number=[p.values[index].item()])


def refuse_join(p):
    x = p.some(1)
    axis = p.axis(p.values[x])
    shape = [size + 1 for size in p.values[x].shape]
    name, function = p.one([("concat", lambda *x: torch.cat(x, axis)), ("stack", lambda *x: torch.stack(x, axis))])
    if name == "concat" and len(shape) == 1:
        raise Rejected("one axis always fits")
    p.refuse(name, [x, p.leaf(shape)], function, axis=axis)


def refuse_targets(p):
    x = p.some(2, 2)
    rows, classes = p.values[x].shape
    targets = p.input([classes] * max(rows, 1), "int64")
    p.refuse("cross_entropy", [x, targets], lambda x, targets: F.cross_entropy(x, targets), number=[0])


def refuse_normalization(p):
    x = p.some(1)
    size = p.values[x].shape[-1]
    weight = p.leaf([size + 1])
    p.refuse("layer_normalize", [x, weight, None], lambda x, weight, _: F.layer_norm(x, (size,), weight), real=1e-5)


REFUSALS = (refuse_broadcast, refuse_product, refuse_affine, refuse_axis, refuse_axes, refuse_shape, refuse_index,
            refuse_join, refuse_targets, refuse_normalization)
