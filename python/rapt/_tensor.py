"""Tensors: a share of a rapt_tensor each, whose elements numpy sees where they lie."""
import ctypes
import itertools
import math
import sys
from numbers import Integral

from ._library import C, DType, Error, Owner, check, keep_for_ever, shape_of, shown

_CODES = {DType.float32: "f4", DType.float64: "f8", DType.int64: "i8", DType.int32: "i4", DType.uint8: "u1",
          DType.bool: "b1"}
_ELEMENTS = {DType.float32: ctypes.c_float, DType.float64: ctypes.c_double, DType.int64: ctypes.c_int64,
             DType.int32: ctypes.c_int32, DType.uint8: ctypes.c_uint8, DType.bool: ctypes.c_bool}
_ORDER = "<" if sys.byteorder == "little" else ">"
_LONG, _EDGE = 1000, 3  # more elements are printed short: so many at each end of an axis, as rapt_print does it


def from_share(handle):
    """A Tensor that takes over a share."""
    tensor = Tensor.__new__(Tensor)
    tensor._handle = handle
    return tensor


def borrowed(handle):
    """A Tensor with a share of its own; None for NULL."""
    return from_share(C.retain(handle)) if handle else None


def call(function, *arguments):
    """The tensor that a function of the library gives to the innermost scope: its share goes to Python's object."""
    scope = C.scope_begin()
    try:
        return borrowed(check(function(*arguments)))
    except ctypes.ArgumentError as error:  # which has the name of what came up, and nothing else of it
        raise RecursionError(str(error)) if "RecursionError" in str(error) else error
    finally:
        C.scope_end(scope)


class Tensor(Owner):
    """Made by rapt.tensor, rapt.wrap, rapt.zeros, ... and by ops."""
    __slots__ = ("_handle", "__weakref__")
    __array_priority__ = 100  # numpy leaves array + tensor to us

    def __init__(self):
        raise TypeError("rapt.tensor(numbers), rapt.wrap(array) and rapt.zeros(shape) make tensors")

    def __del__(self, release=C.release):
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            release(handle)

    @property
    def dtype(self):
        return DType(C.get_dtype(self._handle))

    @property
    def shape(self):
        rank = C.rank(self._handle)
        return tuple((ctypes.c_int64 * rank).from_address(C.shape(self._handle))) if rank else ()

    @property
    def strides(self):
        """In elements."""
        return tuple(C.stride(self._handle, axis) for axis in range(C.rank(self._handle)))

    @property
    def data(self):
        """The address of the first element."""
        return C.data(self._handle)

    @property
    def version(self):
        """How often the memory was changed in place."""
        return C.version(self._handle)

    @property
    def requires_gradient(self):
        return C.requires_gradient(self._handle)

    @property
    def gradient(self):
        """A leaf's; None when there is none yet."""
        return borrowed(C.gradient(self._handle))

    def require_gradient(self):
        check(C.require_gradient(self._handle))
        return self

    def refuse_gradient(self):
        """A leaf becomes a constant, whose gradient is dropped: frozen. Freeze between backward and the next forward:
        what was recorded before gives it no gradient, also where it is a leaf again by then."""
        check(C.refuse_gradient(self._handle))
        return self

    def clear_gradient(self):
        C.clear_gradient(self._handle)

    def detach(self):
        """The same memory outside any graph."""
        return call(C.detach, self._handle)

    def clone(self):
        """A copy outside any graph."""
        return call(C.clone, self._handle)

    # --- the elements ---

    def __array__(self, dtype=None, copy=None):
        import numpy
        array = self.numpy()
        if copy is False and dtype not in (None, array.dtype):
            raise ValueError(f"rapt: an array of {dtype} is a copy of this tensor, which is of {self.dtype.name}")
        return numpy.array(array, dtype) if copy else numpy.asarray(array, dtype)

    def numpy(self, writable=False):
        """A numpy array of the same memory. A writable one counts as one change in place, and is an error where the
        old values may be needed: for the result of a recorded op."""
        import numpy
        data = check(C.data_for_writing(self._handle)) if writable else self.data
        return numpy.asarray(_Shared(self, data, not writable))

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from ._dlpack import give
        if stream is not None or (dl_device is not None and tuple(dl_device) != (1, 0)):
            raise BufferError("rapt: tensors are in the processor's memory: no stream, device (1, 0)")
        return give(self.clone() if copy else self, max_version)

    def tolist(self):
        """Nested lists of Python's numbers."""
        dense = self.contiguous()
        count = C.count(dense._handle)
        numbers = list((_ELEMENTS[dense.dtype] * count).from_address(dense.data)) if count else []
        if not self.shape:
            return numbers[0]
        for axis in range(len(self.shape) - 1, 0, -1):
            size, lists = self.shape[axis], math.prod(self.shape[:axis])
            numbers = [numbers[i * size:(i + 1) * size] for i in range(lists)]
        return numbers

    def item(self):
        if C.count(self._handle) != 1:
            raise Error(f"item: a tensor of one element expected, not shape {list(self.shape)}")
        return self.reshape(()).tolist()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __bool__(self):
        return bool(self.item())

    def __repr__(self):
        if C.count(self._handle) == 0:
            return f"rapt.tensor([], shape={self.shape}, dtype={self.dtype.name})"
        if C.count(self._handle) <= _LONG:
            return f"rapt.tensor({self.tolist()}, dtype={self.dtype.name})"
        return f"rapt.tensor({_short(self)}, shape={self.shape}, dtype={self.dtype.name})"

    def __format__(self, specification):
        return format(self.item(), specification) if specification else str(self)

    def __len__(self):
        if not self.shape:
            raise TypeError("a tensor of rank 0 has no length")
        return self.shape[0]

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, keys):
        keys = keys if isinstance(keys, tuple) else (keys,)
        if sum(key is Ellipsis for key in keys) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        result, axis = self, 0
        for place, key in enumerate(keys):
            if key is Ellipsis:
                before, axis = axis, len(result.shape) - sum(k is not None for k in keys[place + 1:])
                if axis < before:
                    raise IndexError(f"too many indices for shape {list(self.shape)}")
            elif key is None:
                result, axis = result.unsqueeze(axis), axis + 1
            elif axis >= len(result.shape):
                raise IndexError(f"too many indices for shape {list(self.shape)}")
            elif isinstance(key, slice):
                start, stop, step = key.indices(result.shape[axis])
                if step < 0:
                    raise IndexError("a step above 0 expected; rapt.flip turns an axis round")
                result, axis = result.slice(axis, start, max(start, stop), step), axis + 1
            elif type(key).__name__ in ("bool", "bool_") or not hasattr(key, "__index__"):
                raise TypeError(f"an index is a number, a slice, None or ..., not {type(key).__name__}; "
                                "rapt.index_select takes a tensor of numbers")
            else:
                index, size = key.__index__(), result.shape[axis]
                if not -size <= index < size:
                    raise IndexError(f"index {index} of axis {axis}, which has size {size}")
                result = result.select(axis, index % size)
        return result

    # --- in place, outside any graph ---

    def fill(self, value):
        check(C.fill(self._handle, value))
        return self

    def copy_from(self, source):
        """Broadcasts and converts."""
        source = as_tensor(source)  # which lives until C has read it
        check(C.copy(self._handle, source._handle))
        return self

    def add_in_place(self, source, factor=1):
        check(C.add_in_place(self._handle, handle_of(source), factor))
        return self

    def scale_in_place(self, factor):
        check(C.scale_in_place(self._handle, factor))
        return self


def _short(x):
    """The text of nested lists with the ends of long axes."""
    ends, is_long = x.detach(), [size > 2 * _EDGE for size in x.shape]
    for axis, size in enumerate(x.shape):
        if is_long[axis]:
            ends = ends.index_select(axis, tensor([*range(_EDGE), *range(size - _EDGE, size)]))

    def text(numbers, axis):
        if axis == len(is_long):
            return repr(numbers)
        parts = [text(part, axis + 1) for part in numbers]
        return f"[{', '.join(parts[:_EDGE] + ['...'] + parts[_EDGE:] if is_long[axis] else parts)}]"

    return text(ends.tolist(), 0)


class _Shared:
    """What numpy holds of an array: a tensor of its own, since Module.cast gives a parameter other memory."""

    def __init__(self, tensor, data, is_read_only):
        size = int(_CODES[tensor.dtype][1])
        self.tensor = tensor.detach()
        self.__array_interface__ = {
            "version": 3, "shape": tensor.shape, "strides": tuple(stride * size for stride in tensor.strides),
            "typestr": ("|" if size == 1 else _ORDER) + _CODES[tensor.dtype], "data": (data, is_read_only)}


# --- from others ---

def dtype_of(value):
    """The value, which has to be a dtype."""
    if isinstance(value, DType):
        return value
    shape = "; a shape is a tuple: zeros((2, 3))" if isinstance(value, Integral) else ""
    raise TypeError(f"a dtype such as rapt.float32 expected, not {value!r}{shape}")


def _nested(numbers):
    """(flat numbers, shape) of nested lists."""
    shape, flat = [], [numbers]
    while flat and isinstance(flat[0], (list, tuple)):
        sizes = {len(part) if isinstance(part, (list, tuple)) else -1 for part in flat}
        if len(sizes) != 1:
            raise ValueError("rapt.tensor: lists of one length expected side by side")
        shape.append(sizes.pop())
        flat = list(itertools.chain.from_iterable(flat))
    return flat, shape


def _pythons_own(number):
    """A list's element as a number of Python: item() of a tensor or an array without axes gives one."""
    shape = list(getattr(number, "shape", ()))
    if shape:
        raise ValueError(f"rapt.tensor: a number expected, not {type(number).__name__} of shape {shape}; rapt.stack "
                         "joins tensors, numpy.asarray makes an array")
    number = number.item() if hasattr(number, "item") else number
    if not hasattr(number, "__float__") and not hasattr(number, "__index__"):
        raise TypeError(f"rapt.tensor: a number expected, not {type(number).__name__}")
    return int(number) if isinstance(number, Integral) and not isinstance(number, bool) else number


def _in_order(array):
    """The array, or a copy that numpy makes where elements lie in another order than one behind the other: turned
    round, at odd addresses, or several in one place, which wrap does not share."""
    interface = getattr(array, "__array_interface__", None)
    if interface is None or not hasattr(array, "copy") or not isinstance(interface.get("data"), tuple):
        return array
    if not interface["typestr"][2:].isdigit():
        return array  # of no numbers, which wrap refuses
    size = int(interface["typestr"][2:])
    return array.copy() if interface.get("strides") is not None or interface["data"][0] % max(1, size) else array


def tensor(numbers, dtype=None):
    """A tensor of its own memory with the numbers of nested lists, of an array or of another tensor. Without a dtype:
    the array's own for arrays; for lists bool, int64 or float32, or float64 where an element says that it is one."""
    if dtype is not None:
        dtype = dtype_of(dtype)
    if hasattr(numbers, "__array_interface__") or hasattr(numbers, "__dlpack__"):
        copy = wrap(_in_order(numbers)).clone()
        return copy if dtype is None or dtype == copy.dtype else copy.cast(dtype)
    flat, shape = _nested(numbers)
    floating = DType.float32
    if not set(map(type, flat)) <= {bool, int, float}:
        if any(str(getattr(number, "dtype", "")).endswith("float64") for number in flat):
            floating = DType.float64
        flat = [_pythons_own(number) for number in flat]
    if dtype is None:
        kinds = set(map(type, flat))
        dtype = DType.bool if kinds == {bool} else DType.int64 if kinds and kinds <= {bool, int} else floating
    if dtype not in (DType.float32, DType.float64, DType.bool):
        for number in flat:
            if not hasattr(number, "__index__"):
                raise Error(f"tensor: {number!r} is not a number of type {dtype.name}")
    elements = (_ELEMENTS[dtype] * max(1, len(flat)))(*flat)
    if dtype not in (DType.float32, DType.float64, DType.bool):  # ctypes leaves out what is too large for it
        for number, element in zip(flat, elements):
            if number != element:
                raise Error(f"tensor: {shown(number)} is not a number of type {dtype.name}")
    rank, sizes = shape_of(shape)
    return call(C.__dict__["from"], dtype, rank, sizes, elements)


def as_tensor(value):
    return value if isinstance(value, Tensor) else tensor(value)


def handle_of(value):
    """What C takes of a tensor that has to be one."""
    if not isinstance(value, Tensor):
        raise TypeError(f"a rapt.Tensor expected, not {type(value).__name__}; rapt.tensor copies, rapt.wrap shares")
    return value._handle


def handle_or_none(value):
    """The same of a tensor that may be left out."""
    return None if value is None else handle_of(value)


_held, _owners = {}, itertools.count(1)


@keep_for_ever
@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _let_go(owner, held=_held):
    held.pop(owner, None)


def wrap(array):
    """A tensor in the memory of an array (of anything with __array_interface__ or __dlpack__): no copy. The array
    lives as long as the tensor, its views or a graph reads it. What the array may only read is only read here too.
    Who writes to the array after an op has read the tensor, and before backward, gets wrong gradients without an error:
    only what rapt changes is counted. Of a Tensor it is detach."""
    if isinstance(array, Tensor):
        return array.detach()
    if not hasattr(array, "__array_interface__"):
        return from_dlpack(array)
    interface = array.__array_interface__
    code = interface["typestr"]
    dtype = next((d for d, c in _CODES.items() if code[1:] == c and code[0] in (_ORDER, "|", "=")), None)
    if dtype is None or interface.get("mask") is not None:
        raise Error(f"wrap: an array of numpy's type {code!r}; one of {', '.join(_CODES.values())} in this machine's "
                    "order of bytes expected (convert with astype)")
    hidden = getattr(array, "mask", None)  # of which numpy.ma's interface says nothing
    if hasattr(hidden, "any") and hidden.any():
        raise Error(f"wrap: {type(array).__name__} hides elements, which no tensor does; filled() puts numbers there")
    if not isinstance(interface.get("data"), tuple):
        raise Error(f"wrap: {type(array).__name__} says no address of its elements; numpy.asarray makes an array of it")
    data, is_read_only = interface["data"]
    rank, shape = shape_of(interface["shape"])
    strides, size = interface.get("strides"), int(code[2:])
    if strides is not None and any(stride % size for stride in strides):
        raise Error(f"wrap: strides {strides} are not multiples of an element's {size} bytes; copy the array first")
    steps = None if strides is None else shape_of(stride // size for stride in strides)[1]
    steps = ctypes.cast(steps, ctypes.c_void_p) if steps is not None else None
    owner = next(_owners)
    _held[owner] = array, interface  # of a numpy scalar the interface alone holds the memory
    try:
        tensor = call(C.wrap_read_only if is_read_only else C.wrap, dtype, rank, shape, steps, data,
                      ctypes.cast(_let_go, ctypes.c_void_p), owner)
    except BaseException:
        _held.pop(owner, None)
        raise
    if dtype is DType.bool and C.count(tensor._handle):  # numpy's views may have other bytes, which C would count
        if call(C.wrap_read_only, DType.uint8, rank, shape, steps, data, None, None).max().item() > 1:
            raise Error("wrap: elements of bool that are neither 0 nor 1; `array != 0` makes an array of them")
    return tensor


def from_dlpack(array):
    """A tensor in the memory of anything with __dlpack__: no copy."""
    from ._dlpack import take
    return take(array)
