"""Convolutions and pools of sequences (B, C, length) and images (B, C, height, width)."""
import ctypes
from numbers import Integral

from ._library import C, flag, several, whole
from ._module import Module
from ._tensor import Tensor, call, handle_of, handle_or_none

_Pair = ctypes.c_int64 * 2


class _Convolution(ctypes.Structure):
    """rapt_convolution."""
    _fields_ = [("stride", _Pair), ("padding", _Pair), ("dilation", _Pair), ("groups", ctypes.c_int64)]


class _Pool(ctypes.Structure):
    """rapt_pool."""
    _fields_ = [("size", _Pair), ("stride", _Pair), ("padding", _Pair), ("dilation", _Pair), ("ceil", ctypes.c_bool),
                ("leaves_padding_out", ctypes.c_bool)]


STRUCTS = {"rapt_convolution": _Convolution, "rapt_pool": _Pool}


def _along(axes, what, value):
    """A number for each axis: one for all of them, or as many as there are."""
    numbers = (value,) * axes if isinstance(value, Integral) else several(value, what)
    if len(numbers) != axes:
        raise ValueError(f"{what}: {len(numbers)} numbers for {axes} axes")
    return _Pair(*[whole(ctypes.c_int64, number) for number in numbers])


def _options(axes, stride, padding, dilation, groups):
    return _Convolution(_along(axes, "stride", stride), _along(axes, "padding", padding),
                        _along(axes, "dilation", dilation), whole(ctypes.c_int64, groups))


def _convolve(function, x, weight, bias, options):
    return call(function, handle_of(x), handle_of(weight), handle_or_none(bias), ctypes.addressof(options))


def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """rapt_conv1d of rapt.h: x (B, C, length), weight (out, C / groups, size), bias (out)"""
    return _convolve(C.conv1d, x, weight, bias, _options(1, stride, padding, dilation, groups))


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """rapt_conv2d of rapt.h; stride, padding and dilation are a number, or one for height and one for width"""
    return _convolve(C.conv2d, x, weight, bias, _options(2, stride, padding, dilation, groups))


def _pool(function, axes, x, size, stride, padding, dilation, ceil, leaves_padding_out):
    pool = _Pool(_along(axes, "size", size), _along(axes, "stride", size if stride is None else stride),
                 _along(axes, "padding", padding), _along(axes, "dilation", dilation), flag(ceil, "ceil"),
                 flag(leaves_padding_out, "leaves_padding_out"))
    return call(function, handle_of(x), ctypes.addressof(pool))


def max_pool1d(x, size, stride=None, padding=0, dilation=1, ceil=False):
    """rapt_max_pool1d of rapt.h; stride None: the size"""
    return _pool(C.max_pool1d, 1, x, size, stride, padding, dilation, ceil, False)


def max_pool2d(x, size, stride=None, padding=0, dilation=1, ceil=False):
    """rapt_max_pool2d of rapt.h; all are a number, or one for height and one for width"""
    return _pool(C.max_pool2d, 2, x, size, stride, padding, dilation, ceil, False)


def avg_pool1d(x, size, stride=None, padding=0, ceil=False, leaves_padding_out=False):
    """rapt_avg_pool1d of rapt.h; stride None: the size"""
    return _pool(C.avg_pool1d, 1, x, size, stride, padding, 1, ceil, leaves_padding_out)


def avg_pool2d(x, size, stride=None, padding=0, ceil=False, leaves_padding_out=False):
    """rapt_avg_pool2d of rapt.h; all are a number, or one for height and one for width"""
    return _pool(C.avg_pool2d, 2, x, size, stride, padding, 1, ceil, leaves_padding_out)


for _function in (conv1d, conv2d, max_pool1d, max_pool2d, avg_pool1d, avg_pool2d):
    setattr(Tensor, _function.__name__, _function)


class Conv1d(Module):
    """x (B, inputs, length) to (B, outputs, new length)."""

    def __init__(self, inputs, outputs, size, stride=1, padding=0, dilation=1, groups=1, bias=True):
        options = _options(1, stride, padding, dilation, groups)
        super().__init__(C.conv1d_layer_new(inputs, outputs, size, ctypes.addressof(options), flag(bias, "bias")))


class Conv2d(Module):
    """x (B, inputs, height, width) to (B, outputs, new height, new width); a number, or one for height and one for
    width."""

    def __init__(self, inputs, outputs, size, stride=1, padding=0, dilation=1, groups=1, bias=True):
        size, options = _along(2, "size", size), _options(2, stride, padding, dilation, groups)
        super().__init__(C.conv2d_layer_new(inputs, outputs, ctypes.addressof(size), ctypes.addressof(options),
                                            flag(bias, "bias")))
