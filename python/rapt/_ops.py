"""The ops of the library's table, each a function and, where its first parameter is a tensor, a method."""
import ctypes
import itertools

from ._library import (ACTIVATIONS, C, CONVERT, DTYPE_FIRST, OPS, REDUCTIONS, DType, axes_of, check, entries, number_of,
                       several, shape_of)
from ._tensor import Tensor, borrowed, call, dtype_of, handle_of, handle_or_none


def handles_of(values):
    if not hasattr(values, "__iter__"):
        raise TypeError(f"a list of tensors expected, not {values!r}")
    values = list(values)
    handles = (ctypes.c_void_p * len(values))(*[handle_of(value) for value in values])
    handles.values = values  # what a generator made lives as long
    return len(values), handles


_CONVERT = {**{kind: lambda value, convert=convert: (convert(value),) for kind, convert in CONVERT.items()},
            "t": lambda value: (handle_of(value),), "T": handles_of,
            "o": lambda value: (handle_or_none(value),), "s": shape_of, "a": axes_of,
            "r": lambda value: (number_of(value, REDUCTIONS, "reduction"),),
            "f": lambda value: (number_of(value, ACTIVATIONS, "activation"),), "y": lambda value: (dtype_of(value),)}
NAMES = {}


def _refuse(signature, names, arguments, named):
    """Says what is wrong with the arguments of a call, if something is."""
    if len(arguments) > len(names):
        raise TypeError(f"{signature}: {len(names)} argument{'s' * (len(names) > 1)} at most, not {len(arguments)}")
    if unknown := [name for name in named if name not in names]:
        raise TypeError(f"{signature} has no {', '.join(unknown)}")
    if twice := [name for name in named if name in names[:len(arguments)]]:
        raise TypeError(f"{signature}: {', '.join(twice)} given twice")


def _make(name, parameters):
    words = [parameter.partition("=") for parameter in parameters]
    names = [word[0].split(":")[0] for word in words]
    converts = [_CONVERT[word[0].split(":")[1]] for word in words]
    defaults = {n: eval(word[2]) for n, word in zip(names, words) if word[1]}  # the table's own literals
    if "dtype" in defaults:
        defaults["dtype"] = DType(defaults["dtype"])
    function, dtype_first, signature = getattr(C, name), name in DTYPE_FIRST, f"rapt.{name}({', '.join(names)})"

    def op(*arguments, **named):
        values = dict(zip(names, arguments))
        if named or len(arguments) > len(names):
            _refuse(signature, names, arguments, named)
        values = {**defaults, **values, **named}
        if len(values) < len(names):
            raise TypeError(f"{signature}: {', '.join(n for n in names if n not in values)} missing")
        converted = []
        try:
            for n, convert in zip(names, converts):
                converted.append(convert(values[n]))
        except (TypeError, OverflowError) as error:
            what = "" if str(error).startswith(n + ":") else n + ": "
            raise type(error)(f"{signature}: {what}{error}") from None
        if dtype_first:
            converted.insert(0, converted.pop())
        return call(function, *itertools.chain.from_iterable(converted))

    op.__name__ = op.__qualname__ = name
    shown = [f"{n}={defaults[n]!r}" if n in defaults else n for n in names]
    op.__doc__ = f"rapt_{name} of rapt.h; parameters: {', '.join(shown)}"
    return op


for _name, *_parameters in entries(OPS):
    NAMES[_name] = _make(_name, _parameters)
    if _parameters[0].endswith(":t") and not hasattr(Tensor, _name):
        setattr(Tensor, _name, NAMES[_name])


def call_for(count, function, *arguments):
    """The tensor that a function of the library gives, and `count` more that it writes behind its last argument."""
    made = (ctypes.c_void_p * count)()
    places = [ctypes.addressof(made) + i * ctypes.sizeof(ctypes.c_void_p) for i in range(count)]
    scope = C.scope_begin()
    try:
        return borrowed(check(function(*arguments, *places))), tuple(borrowed(place) for place in made)
    finally:
        C.scope_end(scope)


def sort(x, axis=-1, descending=False):
    """The elements in order along an axis, and the places that they had: rapt_sort of rapt.h"""
    elements, (places,) = call_for(1, C.sort, handle_of(x), axis, descending)
    return elements, places


def topk(x, count, axis=-1, largest=True):
    """The first `count` elements of rapt.sort, by default descending, and their places: rapt_topk of rapt.h"""
    elements, (places,) = call_for(1, C.topk, handle_of(x), axis, count, largest)
    return elements, places


def split(x, axis, sizes):
    """A tuple of pieces of those sizes along an axis: rapt_split of rapt.h"""
    count, numbers = shape_of(several(sizes, "sizes"))
    pieces, scope = (ctypes.c_void_p * max(1, count))(), C.scope_begin()
    try:
        check(C.split(handle_of(x), axis, count, numbers, ctypes.addressof(pieces)))
        return tuple(borrowed(piece) for piece in pieces)
    finally:
        C.scope_end(scope)


def batch_normalize(x, weight=None, bias=None, epsilon=1e-5):
    """x (B, C, ...) with each channel's mean and variance taken out, and these two: rapt_batch_normalize of rapt.h"""
    result, (mean, variance) = call_for(2, C.batch_normalize, handle_of(x), handle_or_none(weight),
                                        handle_or_none(bias), epsilon)
    return result, mean, variance


for _function in (sort, topk, split, batch_normalize):
    NAMES[_function.__name__] = _function
    setattr(Tensor, _function.__name__, _function)
