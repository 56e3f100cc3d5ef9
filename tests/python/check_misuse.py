#!/usr/bin/env python3
"""What the Python package refuses: what ctypes alone would hand on to C, to be misread there."""
import copy
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import time

from harness import fails, live, passed, rapt, root, test


@test
def numbers_that_do_not_fit_are_errors():
    x, big = rapt.ones((2, 3)), 1 << 64
    fails("does not fit into 64 bits", rapt.zeros, (big + 2,), kind=OverflowError)
    fails("does not fit into 32 bits", x.sum, 1 << 32, kind=OverflowError)
    for function, *arguments in ((x.slice, 0, big, big + 1), (rapt.eye, big + 1), (x.softmax, 1 << 32)):
        fails("does not fit", function, *arguments, kind=Exception)
    fails("does not fit", rapt.MultiHeadAttention, 8, (1 << 64) + 2, kind=OverflowError)
    fails("does not fit", rapt.DotProductAttention(), x[None], x[None], x[None], window=big + 1, kind=OverflowError)
    fails("does not fit", rapt.conv1d, x[None], rapt.ones((1, 2, 2)), stride=big + 1, kind=OverflowError)
    fails("does not fit", rapt.conv1d, x[None], rapt.ones((1, 2, 2)), groups=big + 1, kind=OverflowError)
    fails("does not fit", rapt.Schedule, "step", period=big + 1, kind=OverflowError)
    for number in (-1, (1 << 64) - 1, 5):
        rapt.seed(number)
    fails("does not fit", rapt.seed, big + 5, kind=Exception)


@test
def a_number_is_the_tensors_own_or_an_error():
    x, large = rapt.tensor([1, 7]), (1 << 53) + 1
    assert (x * large).tolist() == [large, 7 * large] and (large - x).tolist() == [large - 1, large - 7]
    assert (x / 2.0).tolist() == [0, 3] and (large / x).tolist() == [large, large // 7]
    assert (rapt.ones((1,), rapt.float64) * 10 ** 23).item() == 1e23
    for function in (x.__truediv__, x.__rtruediv__, x.__add__, x.__eq__):
        fails("is not a number of type int64", function, 2.5)
    fails("is not a number of type int64", x.__truediv__, float("nan"))
    fails("is not a number of type int64", x.__add__, 1 << 63)
    truth = rapt.tensor([True, False])
    for number in (2, -1, 1 << 60, -large, 1 << 2000, 0.5, float("nan")):
        for function in (truth.__eq__, truth.__ne__, truth.__lt__, truth.__ge__):
            fails("is not a number of type bool, which the tensor has", function, number)
    assert (truth == 1).tolist() == (truth == 1.0).tolist() == (truth == True).tolist() == [True, False]  # noqa: E712
    fails("is no double", x.fill, large, kind=Exception)
    fails("is no double", rapt.full, (1,), large, rapt.int64, kind=Exception)


@test
def a_whole_number_is_subtracted_as_one():
    for dtype, least, most in ((rapt.uint8, 0, 255), (rapt.int32, -1 << 31, (1 << 31) - 1)):
        x = rapt.tensor([5, 200], dtype)
        for number in (least, 1, most):
            assert ((x - number)[0].item() - (5 - number)) % (most - least + 1) == 0, (dtype, number)
        assert (x - 1).tolist() == (x - 1.0).tolist() == [4, 199] and (6 - x)[0].item() == 1
        fails(f"{least - 1} is not a number of type {dtype.name}", x.__sub__, least - 1)
        fails("2.5 is not a number", x.__sub__, 2.5)


@test
def an_index_is_a_number():
    x = rapt.arange(0, 6)
    for key in (x, x > 2, [0, 1], 1.0, True):
        fails("an index is a number, a slice, None or ...", x.__getitem__, key, kind=TypeError)


@test
def objects_are_not_copied_behind_the_librarys_back():
    layer = rapt.Linear(2, 2)
    for value in (rapt.ones((2,)), layer, rapt.Adam(layer)):
        for function in (copy.copy, copy.deepcopy, pickle.dumps):
            fails("copy and pickle do not reach", function, value, kind=TypeError)


@test
def what_is_wrong_with_an_argument_is_told_by_its_name():
    x, layer = rapt.ones((2, 3)), rapt.Linear(2, 3)
    fails("rapt.softmax(x, axis): x: a rapt.Tensor expected, not float", rapt.softmax, 1.0, kind=TypeError)
    fails("rapt.softmax(x, axis): axis: a whole number expected, not 'a'", x.softmax, "a", kind=TypeError)
    fails("clamp(x, low, high): high: a number expected, not None", x.clamp, 1, None, kind=TypeError)
    fails("rapt.zeros(shape, dtype): shape: a whole number", rapt.zeros, (2.0, 3), kind=TypeError)
    fails("rapt.full(shape, value, dtype): value: a number", rapt.full, (2,), None, kind=TypeError)
    fails("sum(x, axes, keep): axes: a whole number", x.sum, (0, "a"), kind=TypeError)
    fails("concat(tensors, axis): tensors: a list of tensors expected, not 3", rapt.concat, 3, kind=TypeError)
    fails("einsum(equation, tensors): equation: a text expected, not 3", rapt.einsum, 3, [x], kind=TypeError)
    fails("slice(x, axis, start, stop, step): start: a whole number", x.slice, 0, 0.5, 1, kind=TypeError)
    fails("tensor: 1.5 is not a number of type int64", rapt.tensor, [1.5], rapt.int64)
    fails("linear_new: a whole number expected, not 2.0", rapt.Linear, 2.0, 3, kind=TypeError)
    fails("dropout_new: a number expected, not 'a'", rapt.Dropout, "a", kind=TypeError)
    fails("topk: a whole number expected, not 'a'", rapt.topk, x, "a", kind=TypeError)
    fails("seed: a whole number expected, not 1.5", rapt.seed, 1.5, kind=TypeError)
    fails("save_npy: a text without NUL expected", rapt.save, "a\0b.npy", x, kind=ValueError)
    fails("a text without NUL expected", rapt.Op, "a\0b", lambda call, y: y, kind=ValueError)
    fails("name: a text expected, not None", rapt.Op, None, lambda call, y: y, kind=TypeError)
    fails("bias: True or False expected, not 'x'", rapt.Linear, 2, 3, bias="x", kind=TypeError)
    fails("Adam: learning_rate: a number expected, not None", rapt.Adam, layer, learning_rate=None, kind=TypeError)
    fails("Muon: adamw: a dictionary of learning_rate", rapt.Muon, layer, adamw=3, kind=TypeError)
    fails("save: tensors by name expected", rapt.save, "nowhere.safetensors", [x], kind=TypeError)
    fails("save: a name is a text, not 1", rapt.save, "nowhere.safetensors", {1: x}, kind=TypeError)
    assert not os.path.exists("nowhere.safetensors")


@test
def a_flag_is_true_or_false():
    x, layer, cube = rapt.ones((2, 3)), rapt.Linear(2, 3), rapt.ones((1, 1, 4))
    for function, *arguments in ((x.sum, None, "False"), (rapt.argsort, x, -1, "False"), (rapt.topk, x, 1, -1, "a"),
                                 (rapt.Dropout(0.5).train, "False"), (rapt.max_pool1d, cube, 2, None, 0, 1, "a")):
        fails("True or False expected, not", function, *arguments, kind=TypeError)
    fails("SGD: nesterov: True or False expected, not 'no'", rapt.SGD, layer, nesterov="no", kind=TypeError)
    fails("bidirectional: True or False expected, not 'a'", rapt.GRU, 2, 3, bidirectional="a", kind=TypeError)


@test
def what_a_signal_raises_is_not_lost_in_a_callback():
    """It comes while C multiplies matrices; Python looks for it as it enters the op's vjp."""
    class Interruption(Exception):
        pass

    def interrupt(*_):
        raise Interruption

    twice = rapt.Op("twice", lambda call, x: 2 * x, lambda call, g: 2 * g)
    x, weight = rapt.ones((800, 800)).require_gradient(), rapt.ones((800, 800))
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(3):
            y = (twice(x) @ weight @ weight @ weight).sum()
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.003)
                y.backward()
                time.sleep(10)  # where it was late
            except Interruption:
                continue
            assert False, "no interruption"
    finally:
        signal.signal(signal.SIGALRM, before)


@test
def arrays_of_numpy_that_are_no_numbers():
    try:
        import numpy
    except ImportError:
        return print("left out: numpy's part")
    large = numpy.int64((1 << 53) + 1)
    fails("is no double", rapt.full, (1,), large, rapt.int64, kind=OverflowError)
    fails("is no double", rapt.ones((1,), rapt.int64).fill, large, kind=OverflowError)
    fails("an index is a number, a slice, None or ...", rapt.ones((2,)).__getitem__, numpy.True_, kind=TypeError)
    for array in numpy.array([1, None], object), numpy.zeros(2, "M8[s]"):
        fails("an array of numpy's type", rapt.tensor, array)


@test
def nothing_is_shown_with_its_shape():
    assert repr(rapt.zeros((1 << 40, 0))) == "rapt.tensor([], shape=(1099511627776, 0), dtype=float32)"


@test
def other_objects_are_no_tensors_and_no_modules():
    x, layer = rapt.ones((2,)), rapt.Linear(2, 2)
    fails("a rapt.Module expected, not Tensor", rapt.Adam, x, kind=TypeError)
    fails("a rapt.Module expected, not Tensor", rapt.Sequential, x, kind=TypeError)
    fails("a rapt.Attention expected, not Linear", rapt.MultiHeadAttention, 8, 2, pooling=layer, kind=TypeError)
    fails("a rapt.Tensor expected, not Linear", x.add_in_place, layer, kind=TypeError)
    fails("a rapt.Tensor expected, not list", rapt.Op("saves", lambda call, y: call.save([y])), x, kind=TypeError)
    fails("causal is 'yes', which is a text", rapt.DotProductAttention(), x, x, x, causal="yes", kind=TypeError)


@test
def what_c_holds_outlives_pythons_modules():
    at_the_end = ["sys.kept = rapt.ones((2,)).__dlpack__(max_version=(1, 0))", "sys.kept = wrapped().__dlpack__()",
                  "sys.kept = rapt.Op('twice', lambda call, x: 2 * x)(rapt.ones((2,)).require_gradient())",
                  "sys.kept = lambda: sys.kept.capsule; sys.kept.capsule = wrapped().__dlpack__()"]
    numbers = "(ctypes.c_float * 2).from_buffer(array.array('f', [1, 2]))"
    start = f"""import array, ctypes, sys; sys.path.insert(0, {os.path.join(root, 'python')!r}); import rapt
class Array:
    def __init__(self):
        self.numbers = {numbers}
        self.__array_interface__ = {{"version": 3, "shape": (2,), "typestr": rapt._tensor._ORDER + "f4",
                                    "data": (ctypes.addressof(self.numbers), False)}}
def wrapped():
    return rapt.wrap(Array())
"""
    for line in at_the_end:
        ended = subprocess.run([sys.executable, "-c", start + line], stderr=subprocess.PIPE)
        assert ended.returncode == 0 and not ended.stderr, (line, ended)


@test
def an_array_says_where_it_lies():
    class Picture:  # as those of PIL, whose data are bytes
        __array_interface__ = {"version": 3, "shape": (2, 2), "typestr": "|u1", "data": b"abcd"}

    class Buffer:
        __array_interface__ = {"version": 3, "shape": (2, 2), "typestr": "|u1"}

    for make in (rapt.wrap, rapt.tensor):
        fails("Picture says no address of its elements; numpy.asarray", make, Picture())
        fails("Buffer says no address of its elements; numpy.asarray", make, Buffer())


@test
def what_is_made_on_the_way_lives_until_c_has_read_it():
    taken = []
    for i in range(20):  # what went too early would have the memory of another
        x = rapt.zeros((3,))
        x.copy_from([i, i + 1, i + 2])
        taken.append(x.tolist() == [i, i + 1, i + 2])
        rows = rapt.stack(rapt.full((2,), i + k) for k in range(4))
        taken.append(rows.tolist() == [[i + k] * 2 for k in range(4)])
        taken.append(rapt.concat(rows).tolist() == [i + k for k in range(4) for _ in range(2)])
    assert all(taken)
    with tempfile.TemporaryDirectory() as directory:
        rapt.save(f"{directory}/x.safetensors", {str(i): [i, i + 1] for i in range(20)})
        read = rapt.load(f"{directory}/x.safetensors")
        assert {name: tensor.tolist() for name, tensor in read.items()} == {str(i): [i, i + 1] for i in range(20)}


@test
def an_op_says_which_argument_is_wrong():
    x = rapt.ones((2,))
    fails("rapt.sum(x, axes, keep) has no dim, out", x.sum, dim=0, out=None, kind=TypeError)
    fails("rapt.sum(x, axes, keep): axes given twice", x.sum, 0, axes=0, kind=TypeError)
    fails("rapt.relu(x): 1 argument at most, not 2", x.relu, 0, kind=TypeError)


@test
def numbers_of_axes_are_whole():
    x = rapt.ones((1, 1, 4, 4))
    fails("shape: a whole number, or some of them, expected, not 2.0", rapt.zeros, 2.0, kind=TypeError)
    fails("axes: a whole number, or some of them, expected, not 'a'", x.sum, "a", kind=TypeError)
    fails("padding: a whole number, or some of them, expected, not 'same'", rapt.Conv2d, 1, 2, 3, padding="same",
          kind=TypeError)
    fails("stride: 3 numbers for 2 axes", rapt.max_pool2d, x, 2, stride=(1, 1, 1), kind=ValueError)


@test
def what_is_no_array_is_not_wrapped():
    for value in ([1, 2], 5):
        for make in (rapt.wrap, rapt.from_dlpack):
            fails(f"__dlpack__ expected, not {type(value).__name__}; rapt.tensor takes numbers", make, value,
                  kind=TypeError)


@test
def lists_have_numbers():
    for value in ("abc", None, range(3), {1, 2}, [1, [2]], [None], 1j):
        fails("rapt.tensor: a number expected, not", rapt.tensor, value, kind=TypeError)
    x = rapt.tensor
    assert x([x(1 << 60), x(2)]).tolist() == [1 << 60, 2] and x([x(True)]).dtype is rapt.bool
    assert x([[x(1), 2.5]]).dtype is rapt.float32 and x([x(0.1, rapt.float64), 1]).tolist() == [0.1, 1]
    fails("a number expected, not Tensor of shape [1]; rapt.stack", x, [x([1]), x([2])], kind=ValueError)


@test
def new_attributes_are_errors():
    layer = rapt.Linear(2, 2)
    adam = rapt.Adam(layer)
    fails("Adam has no lr to set; its learning_rate", setattr, adam, "lr", 5, kind=AttributeError)
    fails("Linear has no weight to set; parameters()", setattr, layer, "weight", rapt.ones((2, 2)), kind=AttributeError)
    fails("Linear has no train to set", setattr, layer, "train", False, kind=AttributeError)
    fails("steps", setattr, adam, "steps", 5, kind=AttributeError)
    adam.learning_rate = 0.25
    assert adam.learning_rate == 0.25

    class Scaled(rapt.Linear):
        def __init__(self, factor):
            super().__init__(2, 2)
            self.factor = factor

        def __call__(self, x):
            return super().__call__(x) * self.factor

    assert Scaled(0)(rapt.ones((1, 2))).tolist() == [[0, 0]]


@test
def a_module_is_one_of_the_librarys():
    class Net(rapt.Module):
        def __init__(self):
            super().__init__()

    for make in (Net, rapt.Module):
        fails("not of one's own; a class that keeps layers", make, kind=TypeError)


@test
def an_optimizer_is_one_of_the_librarys():
    class Own(rapt.Optimizer):
        pass

    for make in (Own, rapt.Optimizer):
        fails("not of one's own; rapt.Adam(module)", make, rapt.Linear(2, 2), kind=TypeError)


@test
def names_and_patterns_of_an_optimizer_are_texts():
    layer = rapt.Linear(2, 2)
    adam, muon = rapt.Adam(layer), rapt.Muon(layer)
    for name in (5, None, layer):
        fails("add: name: a text expected, not", adam.add, name, rapt.ones(1), kind=TypeError)
        fails("group: pattern: a text expected, not", adam.group, name, kind=TypeError)
        fails("by_adamw: pattern: a text expected, not", muon.by_adamw, name, kind=TypeError)
    fails("add: name: a text without NUL", adam.add, "a\0b", rapt.ones(1), kind=ValueError)
    adam.group("*", weight_decay=0.5)


@test
def tensors_of_a_module_are_parameters_or_buffers():
    norm = rapt.BatchNorm(2)
    counts = [len(norm.parameters(what)) for what in (1, 2, 3)]
    assert counts[0] == 2 and counts[0] + counts[1] == counts[2], counts
    for what in (99, -1, 4):
        fails(f"flags {what}; 1 (parameters), 2 (buffers), both or 0 expected", norm.parameters, what)
    assert norm.parameters(0) == {}


@test
def what_is_no_layer_leaves_those_before_it_alone():
    layer = rapt.Linear(2, 2)
    before = live()
    for _ in range(3):
        fails("a rapt.Module expected, not int", rapt.Sequential, layer, rapt.Linear(200, 200), 5, kind=TypeError)
    assert live() == before and rapt.Sequential(layer)(rapt.ones((1, 2))).shape == (1, 2)


@test
def an_activation_is_an_op_of_one_tensor():
    for name in ("leaky_relu", "softmax", "add", "release", "no_such"):
        fails("no op of one tensor alone", rapt.Activation, name, kind=ValueError)
    assert rapt.Activation("relu")(rapt.tensor([-1.0, 2.0])).tolist() == [0, 2]


@test
def losses_of_classes_have_options():
    logits, targets = rapt.zeros((2, 4)), rapt.tensor([1, 9])
    assert abs(rapt.cross_entropy(logits, targets, ignore_index=9).item() - 1.3862943611) < 1e-6
    assert logits.cross_entropy(rapt.tensor([1, 1]), reduction="none").shape == (2,)
    assert rapt.cross_entropy(rapt.tensor([[50.0, 0]]), rapt.tensor([0]), label_smoothing=0.5).item() == 12.5
    assert rapt.nll_loss(rapt.tensor([[-1.0, -2], [-3, -4]]), rapt.tensor([1, 0]), reduction="sum").item() == 5
    fails("positional", rapt.cross_entropy, logits, targets, "sum", kind=TypeError)


@test
def a_reduction_is_a_word():
    x = rapt.tensor([1.0, 2.0])
    assert [rapt.mse_loss(x, 2 * x, word).tolist() for word in ("mean", "sum", "none")] == [2.5, 5, [1, 4]]
    for word in ("foo", 1, None):
        expected = f"reduction is {word!r}; one of mean, sum, none expected"
        fails(expected, rapt.mse_loss, x, x, word, kind=ValueError)
        fails(expected, rapt.cross_entropy, x, rapt.tensor(1), reduction=word, kind=ValueError)


@test
def a_call_is_over_with_its_function():
    kept = []
    double = rapt.Op("double", lambda call, x: (kept.append(call), x * 2)[1])
    double(rapt.ones((2,)))
    fails("after the function that it was handed to", kept[0].saved, 0)


@test
def tensors_are_compared_by_their_elements():
    x = rapt.tensor([1.0, 2.0])
    assert (x == 2).tolist() == [False, True] and (x != x).tolist() == [False, False]
    assert 2 in x and 3 not in x and x != None and len({x, x, rapt.ones(2)}) == 2  # noqa: E711


@test
def empty_lists_have_their_axes():
    assert rapt.zeros((2, 3, 0)).tolist() == [[[], [], []]] * 2 and rapt.zeros((0, 3)).tolist() == []
    assert rapt.zeros((2, 0, 3)).tolist() == [[], []] and rapt.ones((1, 2)).tolist() == [[1, 1]]


@test
def a_shape_is_one_argument():
    for make in (rapt.zeros, rapt.ones, rapt.rand, rapt.empty):
        fails("a dtype such as rapt.float32 expected, not 3", make, 2, 3, kind=TypeError)
    fails("a shape is a tuple", rapt.full, 2, 3.0, 3, kind=TypeError)
    fails("a dtype", rapt.ones(2).cast, "float64", kind=TypeError)
    fails("a dtype such as rapt.float32 expected, not 'float64'", rapt.tensor, [1], "float64", kind=TypeError)
    assert rapt.zeros(2).dtype is rapt.float32 and f"{rapt.int64}, {rapt.uint8!s:>11}" == "rapt.int64,  rapt.uint8"


@test
def paths_are_those_of_os():
    with tempfile.TemporaryDirectory() as directory:
        for path in (os.fsencode(directory) + b"/x.npy", pathlib.Path(directory) / "y.npy", f"{directory}/\udcff.npy"):
            rapt.save(path, rapt.ones((2,)))
            assert rapt.load(path).tolist() == [1, 1] and os.path.exists(path)
        fails("without NUL", rapt.save, f"{directory}/z\0.npy", rapt.ones((2,)), kind=Exception)
        for path, tensors in (("x.npz", rapt.ones(2)), ("x.safetensors", rapt.ones(2)), ("x.npy", {"a": rapt.ones(2)})):
            fails("one tensor goes to a .npy file", rapt.save, f"{directory}/{path}", tensors, kind=ValueError)
        fails("os.PathLike", rapt.Linear(1, 1).save, 5, kind=TypeError)


print(f"{len(passed)} tests passed")
