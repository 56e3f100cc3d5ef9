"""What the tests of the Python package share. RAPT_LIBRARY names the library."""
import ctypes
import gc
import os
import sys

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(root, "python"))
import rapt
from rapt import library

passed = []


def test(function):
    """Runs it; its name is what holds."""
    gc.collect()
    before = live()
    function()
    gc.collect()
    assert live() == before, f"{function.__name__}: {live() - before} bytes stay"
    assert rapt.C.error() is None, rapt.C.error()
    passed.append(function.__name__)
    return function


class Statistics(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("live", "peak", "cached", "allocations")]


library.rapt_memory_get_statistics.restype = Statistics


def live():
    return library.rapt_memory_get_statistics().live


def fails(part, function, *arguments, kind=rapt.Error, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        assert part in str(error), f"{part!r} is not in {error}"
        return
    raise AssertionError(f"no {kind.__name__} that says {part!r}")
