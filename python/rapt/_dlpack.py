"""DLPack's capsules: a pointer to a struct, and a name that says whether it was taken."""
import ctypes

from ._library import C, Error, keep_for_ever
from ._tensor import call

_VERSIONED, _PLAIN = b"dltensor_versioned", b"dltensor"
_USED = {_VERSIONED: b"used_dltensor_versioned", _PLAIN: b"used_dltensor"}
# Where the struct has the address of its deleter.
_DELETER = {_VERSIONED: 16, _PLAIN: 56}

_api = ctypes.pythonapi
_destructor_type = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _destructor_type)(("PyCapsule_New", _api))
_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))
# The same for a capsule that is going: an address, to which no share may be taken.
_valid_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))


@keep_for_ever
@_destructor_type
def _destroy(capsule, places=tuple(_DELETER.items()), valid=_valid_at, pointer=_pointer_at,
             address=ctypes.c_void_p.from_address, function=ctypes.CFUNCTYPE(None, ctypes.c_void_p)):
    """A capsule that nobody took gives its struct back."""
    for name, place in places:
        if valid(capsule, name):
            struct = pointer(capsule, name)
            function(address(struct + place).value)(struct)


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
