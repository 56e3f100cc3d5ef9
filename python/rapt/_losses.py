"""Losses of classes, with their options."""
import ctypes

from ._library import REDUCTIONS, C, number_of, real, whole
from ._tensor import Tensor, call, handle_of, handle_or_none


class _Options(ctypes.Structure):
    """rapt_cross_entropy_options."""
    _fields_ = [("has_ignore_index", ctypes.c_bool), ("ignore_index", ctypes.c_int64),
                ("label_smoothing", ctypes.c_double), ("reduction", ctypes.c_int)]


STRUCTS = {"rapt_cross_entropy_options": _Options}


def _loss(function, tensors, ignore_index, label_smoothing, reduction):
    name = "ignore_index"
    try:
        index = whole(ctypes.c_int64, 0 if ignore_index is None else ignore_index)
        name = "label_smoothing"
        smoothing = real(label_smoothing)
    except (TypeError, OverflowError) as error:
        raise type(error)(f"{name}: {error}") from None
    options = _Options(ignore_index is not None, index, smoothing, number_of(reduction, REDUCTIONS, "reduction"))
    return call(function, *tensors, ctypes.addressof(options))


def cross_entropy(logits, targets, *, ignore_index=None, label_smoothing=0.0, reduction="mean"):
    """rapt_cross_entropy of rapt.h: logits (..., classes), targets (...)"""
    return _loss(C.cross_entropy, (handle_of(logits), handle_of(targets)), ignore_index, label_smoothing, reduction)


def linear_cross_entropy(x, weight, bias, targets, *, ignore_index=None, label_smoothing=0.0, reduction="mean"):
    """cross_entropy of the logits x weight^T + bias, which are never all stored: rapt_linear_cross_entropy of rapt.h;
    x (..., in), weight (classes, in), bias (classes) or None, targets (...)"""
    tensors = handle_of(x), handle_of(weight), handle_or_none(bias), handle_of(targets)
    return _loss(C.linear_cross_entropy, tensors, ignore_index, label_smoothing, reduction)


def nll_loss(log_probabilities, targets, *, ignore_index=None, reduction="mean"):
    """rapt_nll_loss of rapt.h: log_probabilities (..., classes), targets (...)"""
    return _loss(C.nll_loss, (handle_of(log_probabilities), handle_of(targets)), ignore_index, 0.0, reduction)


Tensor.cross_entropy, Tensor.linear_cross_entropy, Tensor.nll_loss = cross_entropy, linear_cross_entropy, nll_loss
