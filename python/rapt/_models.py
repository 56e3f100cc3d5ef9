"""Recurrent layers, Transformers and GPT."""
import ctypes

from ._attention import MASK
from ._library import C, check, flag, library
from ._module import Module
from ._ops import call_for
from ._structs import Struct
from ._tensor import as_tensor, call, handle_of

TRANSFORMER, GPT_CONFIG, GENERATION = (Struct(name) for name in ("rapt_transformer_config", "rapt_gpt_config",
                                                                 "rapt_generation"))


class _Recurrent(Module):
    """Sequences (T, B, in), with PyTorch's equations, names and layout."""
    _new = _bidirectional_new = _forward = _forward_padded = None

    def __init__(self, inputs, hidden, layers=1, dropout=0.0, bidirectional=False):
        new = type(self)._bidirectional_new if flag(bidirectional, "bidirectional") else type(self)._new
        super().__init__(new(inputs, hidden, layers, dropout))

    def _run(self, x, states, lengths):
        given = [handle_of(state) if state is not None else None for state in states]
        if lengths is None:
            return call_for(len(states), type(self)._forward, self._handle, handle_of(x), *given)
        lengths = as_tensor(lengths)
        return call_for(len(states), type(self)._forward_padded, self._handle, handle_of(x), lengths._handle, *given)


class GRU(_Recurrent):
    _new, _bidirectional_new = C.gru_new, C.bidirectional_gru_new
    _forward, _forward_padded = C.gru_forward, C.gru_forward_padded

    def __call__(self, x, state=None, lengths=None):
        """The last layer's outputs (T, B, directions · hidden) and the last state of each layer and direction
        (layers · directions, B, hidden). Of sequence b only the first lengths[b] steps are read."""
        outputs, (final,) = self._run(x, (state,), lengths)
        return outputs, final


class LSTM(_Recurrent):
    _new, _bidirectional_new = C.lstm_new, C.bidirectional_lstm_new
    _forward, _forward_padded = C.lstm_forward, C.lstm_forward_padded

    def __call__(self, x, hidden=None, cell=None, lengths=None):
        """The last layer's outputs, and the last (hidden, cell) of each layer and direction; lengths as of GRU."""
        return self._run(x, (hidden, cell), lengths)


class _OfTransformer(Module):
    _new = None

    def __init__(self, hidden, heads, **config):
        """config: the other fields of rapt_transformer_config; kind is "relu", "gelu", "swiglu" or "gelu_tanh"."""
        struct, _ = TRANSFORMER.fill({"hidden": hidden, "heads": heads, **config})
        super().__init__(type(self)._new(ctypes.addressof(struct)))

    @staticmethod
    def _masks(*masks):
        """Their structs, which keep what they point to; None for an empty one."""
        filled = [MASK.fill(mask) if mask else None for mask in masks]
        return filled, [ctypes.addressof(mask[0]) if mask else None for mask in filled]


class TransformerEncoder(_OfTransformer):
    """(B, T, hidden) to the same; masks by name as for Attention."""
    _new = C.transformer_encoder_new

    def __call__(self, x, **mask):
        held, (place,) = self._masks(mask)
        result = call(C.transformer_encoder_forward, self._handle, handle_of(x), place, None)
        del held
        return result


class TransformerDecoder(_OfTransformer):
    """Attends to itself under a mask, and to a memory (B, S, hidden) under another: dictionaries of a mask's fields."""
    _new = C.transformer_decoder_new

    def __call__(self, x, memory, mask=None, memory_mask=None):
        held, places = self._masks(mask, memory_mask)
        result = call(C.transformer_decoder_forward, self._handle, handle_of(x), handle_of(memory), *places, None)
        del held
        return result


class Transformer(_OfTransformer):
    """Encoder and decoder: source (B, S, hidden) and target (B, T, hidden) to the target's shape."""
    _new = C.transformer_new

    def __call__(self, source, target, source_mask=None, target_mask=None, memory_mask=None):
        held, places = self._masks(source_mask, target_mask, memory_mask)
        result = call(C.transformer_forward, self._handle, handle_of(source), handle_of(target), *places)
        del held
        return result


class _TokenModel(ctypes.Structure):
    """rapt_token_model."""
    _fields_ = [(name, ctypes.c_void_p) for name in ("context", "next", "select", "begin_packed")]


library.rapt_gpt_token_model.argtypes, library.rapt_gpt_token_model.restype = [ctypes.c_void_p], _TokenModel


class GPT(Module):
    """A language model: tokens (B, T) to logits (B, T, vocabulary)."""

    def __init__(self, vocabulary, context, hidden, layers, heads, **config):
        """config: the other fields of rapt_gpt_config; positions is "learned", "sinusoidal", "rotary" or "alibi"."""
        struct, _ = GPT_CONFIG.fill({"vocabulary": vocabulary, "context": context, "hidden": hidden, "layers": layers,
                                     "heads": heads, **config})
        super().__init__(C.gpt_new(ctypes.addressof(struct)))

    def __call__(self, tokens):
        return call(C.gpt_forward, self._handle, handle_of(tokens), None)

    def hidden(self, tokens):
        """What the head gets, (B, T, hidden): for a head of one's own."""
        return call(C.gpt_hidden, self._handle, handle_of(tokens), None)

    def loss(self, tokens, targets):
        """Cross-entropy of the tokens that come next, without all logits in memory."""
        return call(C.gpt_loss, self._handle, handle_of(tokens), handle_of(targets), None)

    def generate(self, prompt, length, **how):
        """Tokens (B, n) after prompts (B, T); gpt.train(False) comes before it. how: fields of rapt_generation,
        top_k=5, beams=4."""
        struct, _ = GENERATION.fill({"length": length, **how})
        prompt, cache = as_tensor(prompt), check(C.gpt_cache_new(self._handle))
        try:
            model = library.rapt_gpt_token_model(cache)
            return call(C.generate, ctypes.addressof(model), prompt._handle, ctypes.addressof(struct))
        finally:
            C.gpt_cache_free(cache)
