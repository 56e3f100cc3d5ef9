#!/usr/bin/env python3
"""What the Python package shares memory with outlives it, and what Ctrl-C breaks off leaves nothing half done."""
import contextlib
import signal
import sys

from harness import fails, passed, rapt, test

try:
    import numpy
except ImportError as missing:
    numpy = print(f"left out: numpy's part ({missing})")


@test
def an_array_keeps_the_memory_of_a_parameter_that_is_cast():
    if not numpy:
        return
    layer = rapt.Linear(512, 512)
    weight = layer.parameters()["weight"].fill(3)
    arrays = [weight.numpy(), weight.numpy(writable=True), numpy.asarray(weight), rapt.wrap(weight).numpy(),
              numpy.from_dlpack(weight), rapt.from_dlpack(weight).numpy()]
    layer.cast(rapt.float64)
    others = [rapt.full((512, 512), 7.0) for _ in range(3)]  # where the memory would be, were it free
    assert all((array == 3).all() and array.dtype == "f4" for array in arrays)
    arrays[1][:] = -1
    assert all((array == -1).all() for array in arrays) and [x[0, 0].item() for x in others] == [7] * 3
    assert weight.dtype is rapt.float64 and weight[0, 0].item() == 3


@test
def an_array_is_of_the_dtype_that_is_asked_for():
    if not numpy:
        return
    x = rapt.tensor([1.0, 2.0])
    assert numpy.asarray(x, "f8").tolist() == [1, 2] and numpy.asarray(x, "f8").dtype == "f8"
    copy = numpy.array(x)
    copy[0] = 5
    assert x.tolist() == [1, 2] and x.__array__(copy=True).flags.writeable
    assert x.__array__(copy=False).ctypes.data == x.__array__("f4", copy=False).ctypes.data == x.data
    fails("is a copy of this tensor, which is of float32", x.__array__, "f8", copy=False, kind=ValueError)


@test
def changes_of_what_is_shared_are_counted():
    for share in (rapt.wrap, rapt.from_dlpack):
        weight, x = rapt.ones((2,)).require_gradient(), rapt.full((2,), 3.0)
        shared = share(x)
        loss = (weight * shared).sum()
        x.fill(100)
        assert shared.version == x.version and shared.data == x.data
        fails("was changed in place after the op ran", loss.backward)


@test
def a_struct_is_given_back_once():
    """Though Ctrl-C comes when it was taken, and nobody has the tensor yet."""
    class Interruption(Exception):
        pass

    def interrupt(frame, event, _):
        if event == "call" and frame.f_code.co_name == "borrowed":
            raise Interruption

    class Exporter:
        def __init__(self):
            self.tensor = rapt.ones((1000,))

        def __dlpack__(self, **arguments):
            return self.tensor.__dlpack__(**arguments)

    exporter = Exporter()
    sys.settrace(interrupt)
    try:
        rapt.from_dlpack(exporter)
        assert False, "no interruption"
    except Interruption:
        pass
    finally:
        sys.settrace(None)
    assert len({rapt.zeros((1000,)).data for _ in range(3)} | {exporter.tensor.data}) > 1
    several = [rapt.full((1000,), i) for i in range(8)]
    assert len({x.data for x in several}) == 8 and exporter.tensor.tolist() == [1] * 1000


@test
def a_capsule_goes_while_an_exception_is_raised():
    numbers = numpy.ones(3, "f4") if numpy else rapt.ones((3,))
    for tensor in (rapt.zeros((1000, 1000)), rapt.wrap(numbers)):  # which numpy's memory calls Python for
        for version in (None, (1, 0)):
            fails("has no len()", lambda: len(tensor.__dlpack__(max_version=version)), kind=TypeError)
    if numpy:
        import weakref
        array = numpy.ones(3, "f4")
        gone = weakref.ref(array)
        capsules = [rapt.wrap(array).__dlpack__()]
        del array
        fails("has no len()", lambda: len(capsules.pop()), kind=TypeError)
        assert gone() is None


@test
def a_struct_that_was_refused_is_the_capsules():
    if not numpy:
        return
    capsule = numpy.ones(3, "f2").__dlpack__()

    class Once:
        def __dlpack__(self):
            return capsule

    for _ in range(2):  # taken, it would be another error
        fails("float of 32 or 64 bits", rapt.from_dlpack, Once())


@test
def recording_is_on_again_whatever_ctrl_c_breaks_off():
    class Interruption(Exception):
        pass

    is_armed = False

    def interrupt(*_):
        nonlocal is_armed
        if is_armed:
            is_armed = False
            raise Interruption

    def wait(seconds):  # apart: Python 3.13 has places in a loop that its try does not reach
        nonlocal is_armed
        is_armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while is_armed:
            with rapt.no_gradient():
                pass

    before, off = signal.signal(signal.SIGALRM, interrupt), 0
    try:
        for i in range(3000):
            try:
                wait(2e-6 + 1e-8 * i)
            except Interruption:
                pass
            off += not rapt.C.is_recording()
            rapt.C.set_recording(True)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert off == 0, f"left off {off} times"


@test
def functions_may_record_nothing():
    @rapt.no_gradient()
    def depth_without_recording(depth):
        assert not rapt.C.is_recording()
        return depth and 1 + depth_without_recording(depth - 1)

    assert depth_without_recording(3) == 3 and rapt.C.is_recording()
    with rapt.no_gradient():
        assert depth_without_recording(1) == 1 and not rapt.C.is_recording()
    assert rapt.C.is_recording()

    def numbers():
        yield 1

    async def later():
        pass

    for function in (numbers, later):
        fails("runs when the call is over; write `with rapt.no_gradient():` in it", rapt.no_gradient(), function,
              kind=TypeError)


@test
def recording_goes_on_behind_a_stack_and_behind_one_in_itself():
    with contextlib.ExitStack() as stack:
        stack.enter_context(rapt.no_gradient())
        assert not rapt.C.is_recording()
    assert rapt.C.is_recording()
    twice = rapt.no_gradient()
    with twice:
        with twice:
            pass
        assert not rapt.C.is_recording()
    assert rapt.C.is_recording()


print(f"{len(passed)} tests passed")
