"""Attention: pooling by itself and with several heads, and masks by rule."""
import ctypes

from ._library import C, check
from ._module import Module
from ._tensor import Tensor, as_tensor, call

_KINDS = {b"b": ctypes.c_bool, b"i": ctypes.c_int, b"l": ctypes.c_int64, b"d": ctypes.c_double, b"t": ctypes.c_void_p,
          b"p": ctypes.c_void_p}


class _Field(ctypes.Structure):
    """rapt_field."""
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_char), ("offset", ctypes.c_size_t)]


class _Struct:
    """A struct of C as the library describes it."""

    def __init__(self, name):
        size = ctypes.c_size_t()
        place = check(C.fields_of(name, ctypes.addressof(size)))
        self.size, self.fields = size.value, {}
        while (field := _Field.from_address(place)).name:
            self.fields[field.name.decode()] = field.kind, field.offset
            place += ctypes.sizeof(_Field)

    def fill(self, named):
        """Its bytes with those fields, and what they point to."""
        if not named.keys() <= self.fields.keys():
            unknown = ", ".join(sorted(named.keys() - self.fields.keys()))
            raise TypeError(f"no such field: {unknown}; there are {', '.join(self.fields)}")
        struct, held = ctypes.create_string_buffer(self.size), []
        for name, value in named.items():
            kind, offset = self.fields[name]
            if value is not None and kind in b"tp":
                held.append(as_tensor(value) if kind == b"t" else value)
                value = held[-1]._handle
            _KINDS[kind].from_buffer(struct, offset).value = value
        return struct, held


_MASK, _HEADS = _Struct(b"rapt_mask"), _Struct(b"rapt_multi_head_attention_config")


def _pool(function, module, tensors, mask, *more):
    """Runs attention under a mask, whose tensors live until it has."""
    struct, held = _MASK.fill(mask)
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"a rapt.Tensor expected, not {type(tensor).__name__}")
    result = call(function, module._handle, *[tensor._handle for tensor in tensors],
                  ctypes.addressof(struct) if mask else None, *more)
    del held
    return result


class Attention(Module):
    """Queries (B, Q, q), keys (B, K, k) and values (B, K, v), or with heads (B, heads, Q, q) and so on. The other
    arguments are the fields of rapt_mask, rules and tensors: attention(q, k, v, causal=True, valid_lengths=[3, 5])."""

    def __call__(self, queries, keys, values, **mask):
        return _pool(C.attention_forward, self, (queries, keys, values), mask)


class DotProductAttention(Attention):
    """Scaled, and fused: no matrix of scores is stored."""

    def __init__(self, dropout=0.0):
        super().__init__(C.dot_product_attention_new(dropout))


class AdditiveAttention(Attention):
    """Bahdanau's, fused too."""

    def __init__(self, query_size, key_size, hidden, dropout=0.0):
        super().__init__(C.additive_attention_new(query_size, key_size, hidden, dropout))


class MultiHeadAttention(Module):
    """Names, layouts and initial values are those of PyTorch's MultiheadAttention. config: the other fields of
    rapt_multi_head_attention_config (groups, dropout, sinks, pooling, ...)."""

    def __init__(self, hidden, heads, bias=True, **config):
        pooling = config.get("pooling")
        if pooling is not None:
            pooling._adopt()
        struct, held = _HEADS.fill({"hidden": hidden, "heads": heads, "bias": bias, **config})
        super().__init__(C.multi_head_attention_new(ctypes.addressof(struct)))
        del held

    def __call__(self, queries, keys, values, **mask):
        return _pool(C.multi_head_attention_forward, self, (queries, keys, values), mask, None)
