#!/usr/bin/env python3
"""The Python package's tensors, ops and files, and memory shared with numpy and PyTorch, by address. Without numpy or
PyTorch their part is left out, and said to be."""
import ctypes
import gc
import os
import sys
import tempfile
import threading

from harness import fails, live, passed, rapt, test

numpy = torch = None
try:
    import numpy
except ImportError as missing:
    print(f"left out: numpy's part ({missing})")
try:
    import torch
except ImportError as missing:
    print(f"left out: PyTorch's part ({missing})")


@test
def numbers_come_and_go():
    x = rapt.tensor([[1, 2.5, 3], [4, 5, 6]])
    assert x.shape == (2, 3) and x.dtype == rapt.float32 and x.strides == (3, 1)
    assert x.tolist() == [[1, 2.5, 3], [4, 5, 6]] and x.T.tolist() == [[1, 4], [2.5, 5], [3, 6]]
    assert rapt.tensor([1, 2]).dtype == rapt.int64 and rapt.tensor([True]).dtype == rapt.DType.bool
    assert rapt.tensor(2.5, rapt.float64).item() == 2.5 and rapt.tensor([]).shape == (0,)
    assert rapt.zeros((2, 0)).tolist() == [[], []] and len(x) == 2 and [row.shape for row in x] == [(3,), (3,)]
    assert float(x[0, 1]) == 2.5 and int(rapt.tensor(7)) == 7 and not rapt.zeros(())
    assert repr(rapt.tensor([1, 2])) == "rapt.tensor([1, 2], dtype=int64)"
    fails("lists of one length", rapt.tensor, [[1], [2, 3]], kind=ValueError)
    for number, dtype in ((300, rapt.uint8), (-1, rapt.uint8), (1 << 31, rapt.int32), (1 << 63, None), (9 ** 99, None)):
        fails("is not a number of type", rapt.tensor, [0, number], dtype)
    assert rapt.tensor([-1 << 63, (1 << 63) - 1]).tolist() == [-1 << 63, (1 << 63) - 1]
    fails("rapt.tensor(numbers)", rapt.Tensor, kind=TypeError)
    fails("one element expected", x.item)
    assert {eval(repr(dtype)) for dtype in rapt.DType} == set(rapt.DType)


@test
def long_tensors_are_printed_short():
    x = rapt.arange(0, 1001, dtype=rapt.int64)
    assert repr(x[:1000]).endswith("998, 999], dtype=int64)") and "..." not in repr(x[:1000])
    assert repr(x) == "rapt.tensor([0, 1, 2, ..., 998, 999, 1000], shape=(1001,), dtype=int64)"
    y = rapt.arange(0, 1200, dtype=rapt.float64).reshape((2, 600)).require_gradient()
    assert repr(y * 1) == ("rapt.tensor([[0.0, 1.0, 2.0, ..., 597.0, 598.0, 599.0], [600.0, 601.0, 602.0, ..., 1197.0, "
                           "1198.0, 1199.0]], shape=(2, 600), dtype=float64)")
    lines = repr(rapt.zeros((600, 2))).replace("[0.0, 0.0]", "r")
    assert lines == "rapt.tensor([r, r, r, ..., r, r, r], shape=(600, 2), dtype=float32)"


@test
def order_has_values_and_places():
    x = rapt.tensor([3.0, 1.0, 2.0]).require_gradient()
    values, places = x.sort()
    assert values.tolist() == [1, 2, 3] and places.tolist() == [1, 2, 0]
    values, places = rapt.topk(x, 2)
    assert values.tolist() == [3, 2] and places.tolist() == [0, 2]
    values.sum().backward()
    assert x.gradient.tolist() == [1, 0, 1] and x.argsort(descending=True).tolist() == [0, 2, 1]
    assert x.index_select(0, (x > 1).flatnonzero()).tolist() == [value for value in x.tolist() if value > 1]
    fails("topk: 4 elements wanted", x.topk, 4)
    assert rapt.einsum("ij,j->i", [rapt.ones((2, 3)), rapt.ones((3,))]).tolist() == [3, 3]


@test
def pieces_have_their_sizes():
    x = rapt.arange(0, 6).reshape((2, 3)).require_gradient()
    first, rest = x.split(1, (1, 2))
    assert first.tolist() == [[0], [3]] and rest.tolist() == [[1, 2], [4, 5]]
    rest.sum().backward()
    assert x.gradient.tolist() == [[0, 1, 1]] * 2 and rapt.split(x, axis=0, sizes=2)[0].tolist() == x.tolist()
    fails("do not sum to 3, the size of axis 1", x.split, -1, (1, 1))
    fails("sizes: a whole number, or some of them, expected", x.split, 0, "a", kind=TypeError)


@test
def operators_and_indices():
    x = rapt.tensor([[1, 2, 3], [4, 5, 6]], rapt.float64)
    assert ((2 * x + 1 - x / 2) @ x.T)[1, 0].item() == 54 and (-x).abs().sum().item() == 21
    assert (6 / x)[0].tolist() == [6, 3, 2] and (1 - x)[1, 2].item() == -5
    assert (x ** 2).mean(0).tolist() == [8.5, 14.5, 22.5]
    assert (x < 3).tolist() == [[True, True, False], [False] * 3] and (x >= x).cast(rapt.int32).sum().item() == 6
    assert x[:, ::2].tolist() == [[1, 3], [4, 6]] and x[-1].tolist() == [4, 5, 6] and x[..., None, 0].shape == (2, 1)
    assert x[1:, 1:].tolist() == [[5, 6]] and x[5:].shape == (0, 3) and x.sum(axes=(0, 1), keep=True).shape == (1, 1)
    assert (2 ** x)[0].tolist() == [2, 4, 8] and (x[:, :2] ** x[:, :2])[1].tolist() == [256, 3125]
    assert ([[1.0, 0], [0, 1]] @ rapt.ones((2, 2)))[0].tolist() == [1, 1]
    low, high = x < 3, x > 1
    assert (low & high).tolist() == [[False, True, False], [False] * 3] == (low & ~(x == 1)).tolist()
    assert (low | high).all().item() and (~low).tolist() == (x >= 3).tolist()
    assert (low & True).tolist() == (True & low).tolist() == (False | low).tolist() == low.tolist()
    assert x.reshape((3, -1)).shape == (3, 2) and rapt.concat([x, x], axis=1).shape == (2, 6)
    fails("index 2 of axis 0, which has size 2", x.__getitem__, 2, kind=IndexError)
    fails("too many indices", x.__getitem__, (0, 0, 0), kind=IndexError)
    fails("too many indices", x.__getitem__, (slice(None), slice(None), ..., 0, 0), kind=IndexError)
    fails("too many indices", x.__getitem__, (0, ..., 0, 0), kind=IndexError)
    fails("a step above 0", x.__getitem__, slice(None, None, -1), kind=IndexError)
    fails("rapt.add(a, b): b missing", rapt.add, x, kind=TypeError)
    fails("rapt.add(a, b)", rapt.add, x, x, c=x, kind=TypeError)
    fails("a rapt.Tensor expected, not list", rapt.add, x, [1], kind=TypeError)


@test
def an_error_is_an_exception_with_the_librarys_words():
    fails("matmul: inner sizes differ", rapt.matmul, rapt.ones((2, 3)), rapt.ones((2, 3)))
    fails("size -1", rapt.zeros, (-1,))
    fails("cannot read", rapt.load, "/no/such.npy")
    fails("expected (rapt.cast converts)", rapt.add, rapt.ones(2), rapt.ones(2, rapt.float64))
    y = (rapt.ones(2).require_gradient() * 2).sum()
    y.backward()
    fails("retain_graph=True there keeps it", y.backward)
    try:
        rapt.zeros((-1,))
    except rapt.Error as error:
        assert error.code == 2
    fails("Adam has no momentum", rapt.Adam, rapt.Linear(1, 1), momentum=1, kind=TypeError)


@test
def gradients():
    x = rapt.tensor([1, 2, 3], rapt.float64).require_gradient()
    assert x.requires_gradient and x.gradient is None
    (x * x).sum().backward()
    assert x.gradient.tolist() == [2, 4, 6]
    x.clear_gradient()
    with rapt.no_gradient():
        assert not (x * 2).requires_gradient
    assert (x * 2).requires_gradient and not (x * 2).detach().requires_gradient
    fails("result of a recorded op", (x * 2).fill, 0)


@test
def gradients_of_gradients():
    x = rapt.tensor([1.0, 2, 3]).require_gradient()
    y = x * x * x
    y.backward(rapt.tensor([1.0, 0, 2]), retain_graph=True)
    assert x.gradient.tolist() == [3, 0, 54]
    y.sum().backward()
    assert x.gradient.tolist() == [6, 12, 81]
    first, nothing = rapt.gradients((x * x * x).sum(), [x, rapt.ones(2).require_gradient()], create_graph=True)
    assert nothing is None and first.tolist() == [3, 12, 27]
    second, = rapt.gradients(first, [x], gradient=rapt.tensor([1.0, 1, 0.5]))
    assert second.tolist() == [6, 12, 9] and x.gradient.tolist() == [6, 12, 81]
    x.clear_gradient()
    (x * x).sum().backward(create_graph=True)
    x.gradient.sum().backward()
    assert x.gradient.tolist() == [4, 6, 8]
    x.clear_gradient()
    fails("requires no gradient", rapt.gradients, (x * 2).sum(), [rapt.ones(3)])
    fails("inputs: a list of tensors expected, not a rapt.Tensor", rapt.gradients, (x * 2).sum(), x, kind=TypeError)
    fails("a rapt.Tensor expected, not list", (x * 2).backward, [1, 2, 3], kind=TypeError)


@test
def an_op_of_ones_own():
    def forward(call, x, y):
        call.save(x)
        call.save_output()
        return (x * y).exp()

    def vjp(call, gradient):
        x, result = call.saved(0), call.saved(1)
        return None, gradient * result * x

    product = rapt.Op("exp_of_product", forward, vjp)
    x, y = rapt.tensor([1, 2], rapt.float64), rapt.tensor([0.5, 0.25], rapt.float64).require_gradient()
    result = product(x, y)
    assert result.tolist() == (x * y).exp().tolist()
    result.sum().backward()
    assert y.gradient.tolist() == (x * (x * y).exp()).tolist()

    def raise_it(call, x):
        raise KeyError("its own")

    fails("its own", rapt.Op("raises", raise_it), x, kind=KeyError)
    fails("not int", rapt.Op("number", lambda call, x: 1), x, kind=TypeError)
    fails("label_smoothing: a number expected, not 'a'", rapt.cross_entropy, x, x, label_smoothing="a", kind=TypeError)
    for start in True, 1:
        fails("a number of 16610 bits is not a number of type", rapt.tensor([start]).__eq__, 10**5000)
    fails("ignore_index: a number of 16610 bits does not", rapt.cross_entropy, x, x, ignore_index=10**5000,
          kind=OverflowError)
    fails("forward: a function expected, not None", rapt.Op, "none", None, kind=TypeError)
    fails("vjp: a function or None expected, not 5", rapt.Op, "five", raise_it, 5, kind=TypeError)
    same = rapt.Op("same", lambda call, x: x, raise_it)
    fails("its own", same(y).sum().backward, kind=KeyError)
    y.clear_gradient()


@test
def files_by_name():
    tensors = {"a": rapt.tensor([[1.5, 2]]), "b": rapt.tensor([1, 2, 3])}
    with tempfile.TemporaryDirectory() as directory:
        for end in ("npz", "safetensors"):
            path = f"{directory}/x.{end}"
            rapt.save(path, tensors)
            assert {k: v.tolist() for k, v in rapt.load(path).items()} == {k: v.tolist() for k, v in tensors.items()}
            if numpy and end == "npz":
                with numpy.load(path) as read:
                    assert read["a"].tolist() == [[1.5, 2]] and read["b"].dtype == numpy.int64
        path = f"{directory}/x.safetensors.index.json"
        rapt.save(path, tensors, shard_bytes=10)
        assert len(os.listdir(directory)) == 5
        for mapped in (False, True):
            read = rapt.load(path, mapped=mapped)
            assert {k: v.tolist() for k, v in read.items()} == {k: v.tolist() for k, v in tensors.items()}
        fails("may only be read", read["a"].fill, 0)
        del read
        rapt.save(f"{directory}/x.npy", tensors["a"].T)
        assert rapt.load(f"{directory}/x.npy").tolist() == [[1.5], [2]]


@test
def threads_have_scopes_of_their_own():
    results = []

    def work():
        x = rapt.ones((3,)).require_gradient()
        (x * x).sum().backward()
        results.append(x.gradient.tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[2, 2, 2]] * 4


@test
def dlpack_there_and_back():
    x = rapt.tensor([[1, 2], [3, 4]], rapt.float32)
    y = rapt.from_dlpack(x.T)
    assert y.data == x.data and y.strides == (1, 2) and x.__dlpack_device__() == (1, 0)
    x.__dlpack__()  # a capsule that nobody takes
    x.__dlpack__(max_version=(1, 1))
    capsule = x.__dlpack__()

    class Taken:
        def __dlpack__(self):
            return capsule

    assert rapt.from_dlpack(Taken()).data == x.data
    fails("taken already", rapt.from_dlpack, Taken())
    leaf = rapt.ones((2,)).require_gradient()
    fails("may only be read", (leaf * 2).__dlpack__, kind=BufferError)
    assert rapt.from_dlpack(leaf * 2).tolist() == [2, 2]
    fails("may only be read", rapt.from_dlpack(leaf * 2).fill, 1)


def numpy_sees_tensors_where_they_are():
    x = rapt.tensor([[1, 2, 3], [4, 5, 6]], rapt.float64)
    for tensor in (x, x.T, x[:, 1], x[1:, ::2]):
        view = numpy.asarray(tensor)
        assert view.ctypes.data == tensor.data and view.shape == tensor.shape and not view.flags.writeable
        assert view.strides == tuple(8 * stride for stride in tensor.strides) and view.tolist() == tensor.tolist()
    view = x.numpy(writable=True)
    version, data = x.version, x.data
    del x
    gc.collect()
    view[0, 0] = 9
    assert view.ctypes.data == data and view.sum() == 29 and version == 1
    for dtype in rapt.DType:
        assert numpy.asarray(rapt.ones((2,), dtype)).dtype == getattr(numpy, dtype.name.replace("bool", "bool_"))
    leaf = rapt.ones((2,)).require_gradient()
    fails("result of a recorded op", (leaf * 2).numpy, writable=True)
    assert numpy.asarray(rapt.zeros((0, 3))).shape == (0, 3)


def arrays_are_wrapped_where_they_are():
    array = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    for part in (array, array.T, array[1:, ::2], array[:, 2], array[:0], numpy.broadcast_to(array[0], (2, 4))):
        tensor = rapt.wrap(part)
        assert part.size == 0 or tensor.data == part.ctypes.data
        assert tensor.shape == part.shape and tensor.tolist() == part.tolist()
    tensor = rapt.wrap(array)
    tensor.fill(1)
    assert array.sum() == 12
    scalars = [rapt.wrap(numpy.float64(i)) for i in range(100)]  # each with memory that is made for it
    assert [scalar.item() for scalar in scalars] == list(range(100))
    held = sys.getrefcount(array)
    x = rapt.wrap(array).T
    assert sys.getrefcount(array) == held + 1
    del x
    assert sys.getrefcount(array) == held
    array.flags.writeable = False
    fails("may only be read", rapt.wrap(array).fill, 0)
    held = sys.getrefcount(array)
    fails("negative", rapt.wrap, array[::-1])
    fails("overlap", rapt.wrap, numpy.lib.stride_tricks.sliding_window_view(array[0], 2))
    fails("'>f4'", rapt.wrap, array.astype(">f4"))
    fails("'<f2'", rapt.wrap, array.astype("f2"))
    fails("not multiples", rapt.wrap, numpy.zeros(3, dtype=[("a", "f4"), ("b", "u1")])["a"])
    assert sys.getrefcount(array) == held
    bytes_behind = numpy.zeros(13, dtype=numpy.uint8)[1:].view(numpy.float32)
    of_records = numpy.zeros(3, dtype=[("a", "f4"), ("b", "u1")])["a"]
    windows = numpy.lib.stride_tricks.sliding_window_view(array[0], 2)
    for part in (array[::-1], array[:, ::-2], array.T, bytes_behind, of_records, windows):
        assert rapt.tensor(part).tolist() == part.tolist()
    copy = rapt.tensor(array)
    assert copy.data != array.ctypes.data and rapt.tensor(array, rapt.float64).dtype == rapt.float64
    assert (rapt.ones((3, 4)) + array).tolist() == (array + 1).tolist() == (array + rapt.ones((3, 4))).tolist()


def numpys_numbers_are_numbers():
    large, two, x = (1 << 24) + 1, numpy.int64(2), rapt.tensor([[1, 2], [3, 4]], rapt.float32)
    numbers = rapt.tensor([numpy.int64(large), two])
    assert numbers.dtype is rapt.int64 and numbers.tolist() == [large, 2]
    assert rapt.tensor([numpy.bool_(True), True]).dtype is rapt.bool
    assert rapt.tensor([[numpy.uint8(3)], [numpy.array(4)]]).tolist() == [[3], [4]]
    assert rapt.tensor([numpy.float32(0.5)]).dtype is rapt.float32
    doubles = rapt.tensor([1, numpy.float64(0.1)])
    assert doubles.dtype is rapt.float64 and doubles.tolist() == [1, 0.1]
    fails("not ndarray of shape [1]", rapt.tensor, [numpy.array([1]), numpy.array([2])], kind=ValueError)
    assert rapt.zeros(two).shape == (2,) and x.reshape(two * 2).shape == (4,)
    assert x.sum(numpy.int64(0)).tolist() == [4, 6]
    assert rapt.max_pool1d(x[None], two).tolist() == [[[2], [4]]]
    for result in (x * two, two * x, x * numpy.float32(2), numpy.float16(2) * x):
        assert result.dtype is rapt.float32 and result.tolist() == [[2, 4], [6, 8]]
    array = x.numpy()
    assert (array @ x).tolist() == (array @ array).tolist() == (x @ array).tolist()
    assert (array ** x).tolist() == (array ** array).tolist() and ((array < 3) & (x > 1)).sum().item() == 1
    fails("rapt.sum(x, axes, keep) has no axis", numpy.sum, x, kind=TypeError)


def numpy_takes_and_gives_dlpack():
    x = rapt.tensor([[1, 2], [3, 4]], rapt.float32)
    array = numpy.from_dlpack(x.T)
    assert array.ctypes.data == x.data and array.tolist() == [[1, 3], [2, 4]]
    other = numpy.arange(6.0)
    tensor = rapt.from_dlpack(other.reshape(2, 3).T)
    assert tensor.data == other.ctypes.data and tensor.shape == (3, 2) and tensor.strides == (1, 3)
    held = sys.getrefcount(other)
    del tensor
    assert sys.getrefcount(other) == held - 1 or sys.getrefcount(other) == held  # a view may hold it


def numpy_reads_and_writes_npy():
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/x.npy"
        for code in ("f4", "f8", "i8", "i4", "u1", "b1", ">f4", ">i8"):
            for order in "CF":
                array = numpy.asarray(numpy.arange(24).reshape(2, 3, 4) % 7, dtype=code, order=order)
                numpy.save(path, array)
                tensor = rapt.load(path)
                assert tensor.tolist() == array.tolist()
                assert tensor.strides == tuple(stride // array.itemsize for stride in array.strides)
                rapt.save(path, tensor)
                assert (numpy.load(path) == array).all()
        path = f"{directory}/x.npz"
        arrays = {"a": numpy.arange(5.0), "b.c": numpy.zeros((2, 0), "f4"), "é": numpy.int32(3)}
        numpy.savez(path, **arrays)
        read = rapt.load(path)
        assert list(read) == list(arrays) and all(read[k].tolist() == arrays[k].tolist() for k in arrays)
        numpy.savez_compressed(path, **arrays)
        fails("compressed; numpy.savez writes", rapt.load, path)


def pytorch_shares_memory():
    x = rapt.tensor([[1, 2, 3], [4, 5, 6]], rapt.float32)
    theirs = torch.from_dlpack(x.T)
    assert theirs.data_ptr() == x.data and theirs.tolist() == x.T.tolist() and theirs.stride() == (1, 3)
    theirs[0, 1] = 9
    assert x[1, 0].item() == 9
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool):
        their = torch.ones(2, 3).to(dtype)[:, 1:]
        ours = rapt.from_dlpack(their)
        assert ours.data == their.data_ptr() and ours.strides == their.stride() and ours.tolist() == their.tolist()
        assert torch.from_dlpack(ours).data_ptr() == their.data_ptr()
    fails("code 2 with 16 bits", rapt.from_dlpack, torch.ones(2).half())
    fails("code 4 with 16 bits", rapt.from_dlpack, torch.ones(2).bfloat16())
    released = torch.ones(1000)
    ours = rapt.from_dlpack(released)
    address = released.data_ptr()
    del released
    assert ours.data == address and ours.sum().item() == 1000
    for their in (torch.tensor([16777217]), torch.tensor([[0.1]], dtype=torch.float64), torch.tensor(3), torch.ones(2)):
        ours = rapt.tensor(their)
        assert ours.shape == tuple(their.shape) and ours.tolist() == their.tolist() and ours.data != their.data_ptr()
        assert str(ours.dtype)[5:] == str(their.dtype)[6:]
    assert rapt.tensor(torch.ones(2), rapt.int64).dtype is rapt.int64
    assert rapt.tensor([torch.tensor(1 << 60), torch.tensor(2)]).tolist() == [1 << 60, 2]
    fails("detach()", rapt.tensor, torch.ones(2, requires_grad=True), kind=RuntimeError)


if numpy:
    for function in (numpy_sees_tensors_where_they_are, arrays_are_wrapped_where_they_are, numpys_numbers_are_numbers,
                     numpy_takes_and_gives_dlpack, numpy_reads_and_writes_npy):
        test(function)
if torch:
    test(pytorch_shares_memory)
print(f"{len(passed)} tests passed, with {'numpy ' + numpy.__version__ if numpy else 'no numpy'} and "
      f"{'PyTorch ' + torch.__version__ if torch else 'no PyTorch'}")
