"""Ops of one's own, in Python: one function that computes and one that differentiates."""
import ctypes
import sys

from ._library import C, Error, check, keep_for_ever, library, raised, shape_of, text
from ._ops import handles_of
from ._tensor import Tensor, borrowed, call, handle_of

_FORWARD = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
_VJP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_bool))
_UNSUPPORTED = 9  # RAPT_ERROR_UNSUPPORTED


class _Struct(ctypes.Structure):
    """rapt_foreign_op, whose first member is a rapt_op."""
    _fields_ = [("name", ctypes.c_char_p), ("forward", ctypes.c_void_p), ("vjp", ctypes.c_void_p),
                ("options_size", ctypes.c_size_t), ("optional", ctypes.c_uint32), ("outputs", ctypes.c_int),
                ("no_gradient", ctypes.c_char_p), ("definition", ctypes.c_void_p),
                ("no_second_gradient", ctypes.c_char_p), ("foreign_forward", _FORWARD), ("foreign_vjp", _VJP)]


def _place_of(name):
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


class Call:
    """One application of an op, for as long as its forward or vjp runs."""

    def __init__(self, handle):
        self._place = handle

    @property
    def _handle(self):
        if self._place is None:
            raise Error("a call of an op is used after the function that it was handed to")
        return self._place

    def _run(self, function, *arguments):
        try:
            return function(self, *arguments)
        finally:
            self._place = None

    def save(self, *tensors):
        """In forward: keeps inputs for the vjp."""
        for tensor in tensors:
            C.call_save(self._handle, handle_of(tensor))

    def save_output(self):
        """In forward: keeps what it will return, as the next that is saved."""
        C.call_save_output(self._handle, 0)

    def saved(self, index):
        """In vjp: the index-th that forward saved."""
        return borrowed(check(C.call_saved(self._handle, index)))

    def wants(self, index):
        """Does that input want a gradient?"""
        return C.call_wants(self._handle, index)


class Op:
    """square = rapt.Op("square", forward, vjp); square(x) runs forward(call, x) and records it. In backward
    vjp(call, gradient) returns the gradients of the inputs, one or a tuple of them, None where there is none. Written
    with rapt's ops it can be differentiated itself. Graphs point to an op: it lives as long as the program."""

    def __init__(self, name, forward, vjp=None):
        if not isinstance(name, str):
            raise TypeError(f"name: a text expected, not {name!r}")
        if not callable(forward):
            raise TypeError(f"forward: a function expected, not {forward!r}")
        if vjp is not None and not callable(vjp):
            raise TypeError(f"vjp: a function or None expected, not {vjp!r}")
        self.name, self._in_c, self._forward, self._vjp = name, text(name), forward, vjp
        self._struct = _Struct(name=self._in_c, forward=_place_of("rapt_foreign_forward"),
                               vjp=_place_of("rapt_foreign_vjp") if vjp is not None else None,
                               foreign_forward=_FORWARD(self._run_forward), foreign_vjp=_VJP(self._run_vjp))
        keep_for_ever(self)

    def _fail(self, exception):
        raised.exception = exception
        C.fail(_UNSUPPORTED, self._in_c, b"an exception in Python")

    def _run_forward(self, handle, output):
        try:
            inputs = [borrowed(C.call_input(handle, i)) for i in range(C.call_count(handle))]
            result = Call(handle)._run(self._forward, *inputs)
            if not isinstance(result, Tensor):
                raise TypeError(f"{self.name}: forward returns a rapt.Tensor, not {type(result).__name__}")
            output[0] = C.detach(result._handle)  # of the engine's scope
        except BaseException as exception:
            self._fail(exception)

    def _run_vjp(self, handle, is_good):
        try:
            gradients = Call(handle)._run(self._vjp, borrowed(C.call_gradient(handle, 0)))
            gradients, count = gradients if isinstance(gradients, tuple) else (gradients,), C.call_count(handle)
            if len(gradients) < count:
                raise TypeError(f"{self.name}: its vjp gave {len(gradients)} of the gradients of {count} inputs; None "
                                "where there is none")
            for i, gradient in enumerate(gradients):
                if gradient is not None and C.call_wants(handle, i):
                    view = C.reshape(handle_of(gradient), *shape_of(gradient.shape))  # of the engine's scope
                    if not C.call_give(handle, i, view):
                        return
            is_good[0] = True
        except BaseException as exception:
            self._fail(exception)

    def __call__(self, *inputs):
        return call(C.apply, ctypes.addressof(self._struct), None, *handles_of(inputs))


def _keep_escaped(told, callbacks=(Op._run_forward, Op._run_vjp), kept=raised, before=sys.unraisablehook):
    """Keeps what leaves a callback before its first line, or while it keeps another exception: Ctrl-C, most likely,
    which Python looks for as it enters a function."""
    named = told.object is None and "<bound method Op._run_" in (told.err_msg or "")  # from Python 3.13 on
    if named or getattr(told.object, "__func__", None) in callbacks:
        kept.exception = told.exc_value
    else:
        before(told)


sys.unraisablehook = _keep_escaped
