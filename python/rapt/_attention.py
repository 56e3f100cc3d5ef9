"""Attention: pooling by itself and with several heads, and masks by rule."""
import ctypes

from ._library import C
from ._module import Module, refuse_own_call
from ._structs import Struct
from ._tensor import call, handle_of

MASK, HEADS = Struct("rapt_mask"), Struct("rapt_multi_head_attention_config")


def _pool(function, module, tensors, mask, *more):
    """Runs attention under a mask, whose tensors live until it has."""
    struct, held = MASK.fill(mask)
    result = call(function, module._handle, *map(handle_of, tensors), ctypes.addressof(struct) if mask else None, *more)
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


class Rotary(Module):
    """Turns queries and keys by their places: MultiHeadAttention(64, 4, rotary=Rotary())."""

    def __init__(self):
        super().__init__(C.rotary_new())


class MultiHeadAttention(Module):
    """Names, layouts and initial values are those of PyTorch's MultiheadAttention. config: the other fields of
    rapt_multi_head_attention_config (groups, dropout, sinks, pooling, rotary, ...)."""

    def __init__(self, hidden, heads, bias=True, **config):
        struct, held = HEADS.fill({"hidden": hidden, "heads": heads, "bias": bias, **config}, pooling=Attention,
                                  rotary=Rotary)
        for part in ("pooling", "rotary"):
            if config.get(part) is not None:
                refuse_own_call(config[part], "MultiHeadAttention")
                config[part]._adopt()
        super().__init__(C.multi_head_attention_new(ctypes.addressof(struct)))
        del held

    def __call__(self, queries, keys, values, **mask):
        return _pool(C.multi_head_attention_forward, self, (queries, keys, values), mask, None)
