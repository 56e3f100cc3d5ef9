"""What walks through the graph, and what is not recorded in one."""
import contextlib
import ctypes
import functools
import inspect

from ._library import C, check, library
from ._ops import handles_of
from ._tensor import Tensor, borrowed


def _start(root, gradient):
    """(1, the root, its gradient or NULL) for C."""
    return *handles_of([root]), None if gradient is None else handles_of([gradient])[1]


def _flags(retain_graph, create_graph):
    """Of rapt_backward_flags."""
    return (1 if retain_graph else 0) | (2 if create_graph else 0)


def backward(root, gradient=None, retain_graph=False, create_graph=False):
    """Adds d root / d leaf to the gradient of every leaf, and frees the graph unless it is retained, or created: then
    the gradients are in a graph themselves. A root of more than one element needs a gradient of its shape."""
    scope = C.scope_begin()
    try:
        check(C.backward_from(*_start(root, gradient), _flags(retain_graph, create_graph)))
    finally:
        C.scope_end(scope)


def gradients(root, inputs, gradient=None, retain_graph=False, create_graph=False):
    """d root / d each of the inputs, None where the root does not depend on it: rapt_gradients of rapt.h; the other
    arguments as of backward. The gradients of leaves stay as they are."""
    if isinstance(inputs, Tensor):  # whose rows are what no root was computed from
        raise TypeError("inputs: a list of tensors expected, not a rapt.Tensor")
    count, handles = handles_of(inputs)
    made, scope = (ctypes.c_void_p * count)(), C.scope_begin()
    try:
        check(C.gradients(*_start(root, gradient), count, handles, made, _flags(retain_graph, create_graph)))
        return [borrowed(place) for place in made]
    finally:
        C.scope_end(scope)


Tensor.backward = backward


# Called with what an __exit__ is called with, too, which C passes over.
_restore = ctypes.CFUNCTYPE(None, ctypes.c_bool, *[ctypes.py_object] * 3)(("rapt_set_recording", library))


class _Exit:
    """What `with` looks up before it enters: on the way out there is no function of Python's own, where it would look
    for Ctrl-C. contextlib.ExitStack asks the class instead."""

    def __get__(self, manager, kind=None):
        if manager is None:
            return lambda manager, *details: _restore(manager._before, *details)
        manager._before = ctypes.c_bool(True)
        return functools.partial(_restore, manager._before)


class no_gradient(contextlib.ContextDecorator):
    """`with rapt.no_gradient():` nothing is recorded; `@rapt.no_gradient()` says it of a function."""
    __exit__ = _Exit()

    def __init__(self):
        self._before = ctypes.c_bool(True)

    def __call__(self, function):
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise TypeError(f"no_gradient: {function.__name__} runs when the call is over; write "
                            "`with rapt.no_gradient():` in it")
        return super().__call__(function)

    def __enter__(self):
        self._before.value = C.is_recording()
        try:
            C.set_recording(False)
        except BaseException:
            _restore(self._before, None, None, None)
            raise

    def _recreate_cm(self):  # for each call of a function that it decorates
        return no_gradient()
