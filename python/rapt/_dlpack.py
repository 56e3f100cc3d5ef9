"""DLPack's capsules: a pointer to a struct, and a name that says whether it was taken."""
import ctypes

from ._library import C, Error
from ._tensor import call

_VERSIONED, _PLAIN = b"dltensor_versioned", b"dltensor"
_USED = {_VERSIONED: b"used_dltensor_versioned", _PLAIN: b"used_dltensor"}

_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))
# rapt_python, for the destructor, which is the library's: no function of Python's may run while an exception is raised.
_FUNCTIONS = ("PyCapsule_IsValid", "PyCapsule_GetPointer", "PyErr_Fetch", "PyErr_Restore")
C.python_set((ctypes.c_void_p * 4)(*[ctypes.cast(_api[name], ctypes.c_void_p).value for name in _FUNCTIONS]))
_destroy = ctypes.cast(C.python_capsule_destructor, ctypes.c_void_p)


def give(tensor, max_version):
    """A capsule of the newest kind that the receiver knows."""
    versioned = max_version is not None and max_version[0] >= 1
    struct = (C.to_dlpack if versioned else C.to_dlpack_unversioned)(tensor._handle)
    if not struct:
        message = C.error().decode()
        C.clear_error()
        raise BufferError(message)
    return _new(struct, _VERSIONED if versioned else _PLAIN, _destroy)


def take(array):
    """The tensor of an object with __dlpack__."""
    if not hasattr(array, "__dlpack__"):
        raise TypeError(f"an array with __array_interface__ or __dlpack__ expected, not {type(array).__name__}; "
                        "rapt.tensor takes numbers and lists")
    try:
        capsule = array.__dlpack__(max_version=(1, 0))
    except TypeError:  # an older library
        capsule = array.__dlpack__()
    for name, function in ((_VERSIONED, C.from_dlpack), (_PLAIN, C.from_dlpack_unversioned)):
        if _valid(capsule, name):
            struct = _pointer(capsule, name)
            _rename(capsule, _USED[name])  # first: what Ctrl-C leaves half done must not be given back twice
            try:
                return call(function, struct)
            except Error:  # the struct is the capsule's as before
                _rename(capsule, name)
                raise
    raise Error("from_dlpack: the capsule was taken already, or is none of DLPack's")
