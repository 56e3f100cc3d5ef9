"""Structs of C as the library describes them, filled in from arguments by name."""
import ctypes

from ._library import C, check, flag, number_of, whole
from ._module import module_of
from ._tensor import as_tensor

_KINDS = {b"b": ctypes.c_bool, b"i": ctypes.c_int, b"l": ctypes.c_int64, b"d": ctypes.c_double, b"t": ctypes.c_void_p,
          b"p": ctypes.c_void_p}

# Fields with one of these words in C's enumeration, by the type's name in the headers.
WORDS = {
    "rapt_feed_forward_kind": ("kind", ("relu", "gelu", "swiglu", "gelu_tanh")),
    "rapt_gpt_positions": ("positions", ("learned", "sinusoidal", "rotary", "alibi")),
    "rapt_parameter_names": ("names", ("pytorch", "gpt2")),
}
_WORDS = dict(WORDS.values())


class _Field(ctypes.Structure):
    """rapt_field."""
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_char), ("offset", ctypes.c_size_t)]


class Struct:
    """One of them, by the name that the library knows."""

    def __init__(self, name):
        size = ctypes.c_size_t()
        place = check(C.fields_of(name.encode(), ctypes.addressof(size)))
        self.name, self.size, self.fields = name, size.value, {}
        while (field := _Field.from_address(place)).name:
            self.fields[field.name.decode()] = field.kind, field.offset
            place += ctypes.sizeof(_Field)

    def fill(self, named, **modules):
        """Its bytes with those fields, and what they point to; modules: the class of each field that is one."""
        if not named.keys() <= self.fields.keys():
            unknown = ", ".join(sorted(named.keys() - self.fields.keys()))
            raise TypeError(f"no such field: {unknown}; there are {', '.join(self.fields)}")
        struct, held = ctypes.create_string_buffer(self.size), []
        for name, value in named.items():
            kind, offset = self.fields[name]
            if isinstance(value, str):
                if name not in _WORDS:
                    raise TypeError(f"{name} is {value!r}, which is a text")
                value = number_of(value, _WORDS[name], name)
            if value is not None and kind in b"tp":
                held.append(as_tensor(value) if kind == b"t" else module_of(value, modules[name]))
                value = held[-1]._handle
            place = _KINDS[kind].from_buffer(struct, offset)
            try:
                if kind in b"il":
                    value = whole(_KINDS[kind], value).value
                place.value = flag(value) if kind == b"b" else value
            except (TypeError, OverflowError) as error:
                raise type(error)(f"{name}: {error}") from None
        return struct, held
