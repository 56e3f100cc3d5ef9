"""Layers and files."""
import ctypes
import os

from ._library import OPS, C, FixedOwner, check, entries, flag, library, text
from ._tensor import Tensor, as_tensor, borrowed, call, dtype_of, handle_of


class _List(ctypes.Structure):
    """rapt_tensor_list."""
    _fields_ = [("count", ctypes.c_int), ("tensors", ctypes.POINTER(ctypes.c_void_p)),
                ("names", ctypes.POINTER(ctypes.c_char_p))]


class Module(FixedOwner):
    """A layer; calling it runs its forward. Names, shapes and initial values are PyTorch's."""
    _instead = "parameters() has the tensors by name, and copy_from changes one"

    def __init__(self, *handle):
        if not handle:
            raise TypeError("rapt.Module is the base of the library's layers, not of one's own; a class that keeps "
                            "layers and calls them needs no base, and rapt.Sequential(*layers) gives an optimizer all "
                            "of them")
        self._handle, self._adopted = check(*handle), False

    def __getattr__(self, name):
        if name in ("_handle", "_adopted"):
            raise AttributeError(f"{type(self).__name__}.__init__ has to call super().__init__(...)")
        return object.__getattribute__(self, name)  # raises, as it did

    def __del__(self, free=C.module_free):
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            free(handle)

    def _adopt(self):
        """For a parent, which takes the share of a new module: this object keeps one of its own."""
        if not self._adopted:
            C.module_retain(self._handle)
            self._adopted = True
        return self._handle

    def __call__(self, x):
        return call(C.module_forward, self._handle, handle_of(x))

    def train(self, training=True):
        C.module_train(self._handle, training)
        return self

    def cast(self, dtype):
        """Makes float32 or float64 of all floating parameters and buffers, in place; gradients are dropped."""
        check(C.module_cast(self._handle, dtype_of(dtype)))
        return self

    def parameters(self, what=1):
        """Tensors by full name; what: 1 parameters, 2 buffers, 3 both, 0 none."""
        pointer = check(C.module_list(self._handle, what))
        found = _List.from_address(pointer)
        result = {found.names[i].decode(): borrowed(found.tensors[i]) for i in range(found.count)}
        C.tensor_list_free(pointer)
        return result

    def freeze(self, pattern, frozen=True):
        """Freezes the parameters whose full names match the pattern ("*.bias", as in a shell), or trains them again,
        and says how many match: Tensor.refuse_gradient and require_gradient of each. No gradient is computed for frozen
        ones, and optimizers pass them over."""
        frozen = flag(frozen, "freeze: frozen")
        return check(C.module_freeze(self._handle, text(pattern, "freeze: pattern"), frozen) or None)

    def clear_gradients(self):
        C.module_clear_gradients(self._handle)

    def save(self, path):
        """A safetensors file."""
        check(C.module_save(self._handle, os.fsencode(path)))

    def load(self, path):
        check(C.module_load(self._handle, os.fsencode(path)))
        return self


def module_of(value, kind=Module, cure=""):
    """The value, which has to be a module of that class."""
    if not isinstance(value, kind):
        raise TypeError(f"a rapt.{kind.__name__} expected, not {type(value).__name__}{cure}")
    return value


class Linear(Module):
    """x (..., inputs) to x weight^T + bias (..., outputs)."""

    def __init__(self, inputs, outputs, bias=True):
        super().__init__(C.linear_new(inputs, outputs, flag(bias, "bias")))


class Embedding(Module):
    """Whole numbers below count (...) to rows of the weight (..., size)."""

    def __init__(self, count, size):
        super().__init__(C.embedding_new(count, size))


class LayerNorm(Module):
    """x (..., size) with mean 0 and variance 1 along the last axis, times weight plus bias."""

    def __init__(self, size, bias=True):
        super().__init__(C.layer_norm_new(size, flag(bias, "bias")))


class RMSNorm(Module):
    """x (..., size) with mean square 1 along the last axis, times weight."""

    def __init__(self, size):
        super().__init__(C.rms_norm_new(size))


class BatchNorm(Module):
    """x (B, size, ...) with mean 0 and variance 1 in each channel; after train(False) by the running statistics."""

    def __init__(self, size):
        super().__init__(C.batch_norm_new(size))


class Dropout(Module):
    """Zeros with that probability, and what is left divided by the rest of it; x itself after train(False)."""

    def __init__(self, probability):
        super().__init__(C.dropout_new(probability))


_OF_ONE = [name for name, *parameters in entries(OPS) if parameters == ["x:t"] and not name.endswith("_like")]


class Activation(Module):
    """An op of one tensor, and of nothing else, as a layer: Activation("tanh")."""

    def __init__(self, name):
        if name not in _OF_ONE:
            raise ValueError(f"{name!r} is no op of one tensor alone; those are {', '.join(_OF_ONE)}")
        function = getattr(library, "rapt_" + name)
        super().__init__(C.activation_new(name.encode(), ctypes.cast(function, ctypes.c_void_p)))


def refuse_own_call(module, caller):
    """For a caller in C, which would run the library's forward in the place of a user's __call__."""
    kind = type(module)
    if kind.__call__.__module__.rpartition(".")[0] != __package__:
        raise TypeError(f"{kind.__name__} has a __call__ of its own, which rapt.{caller} does not run: it runs the "
                        "library's; call such layers yourself")


class Sequential(Module):
    """Layers one after another. An optimizer, save() and load() take it also where its layers are called otherwise."""

    def __init__(self, *layers):
        cure = "; rapt.Activation makes one of an op, and of a class of your own the layers that it keeps are given"
        layers = self._layers = [module_of(layer, cure=cure) for layer in layers]  # all, before the first is adopted
        handles = (ctypes.c_void_p * max(1, len(layers)))(*[layer._adopt() for layer in layers])
        super().__init__(C.sequential_new(len(layers), ctypes.cast(handles, ctypes.c_void_p)))

    def __call__(self, x):
        self._refuse_own_calls()
        return super().__call__(x)

    def _refuse_own_calls(self):
        for layer in self._layers:
            refuse_own_call(layer, "Sequential")
            if isinstance(layer, Sequential):
                layer._refuse_own_calls()


# --- files ---

def save(path, tensors, shard_bytes=None):
    """Writes tensors by name as .safetensors or .npz, or one tensor as .npy; as .safetensors.index.json in shards of at
    most shard_bytes each."""
    name = os.fsencode(path)
    if isinstance(tensors, Tensor) != name.endswith(b".npy"):
        raise ValueError("one tensor goes to a .npy file, and tensors by name to another")
    if isinstance(tensors, Tensor):
        check(C.save_npy(name, tensors._handle))
        return
    if not hasattr(tensors, "items"):
        raise TypeError(f"save: tensors by name expected, such as {{'weight': tensor}}, not {type(tensors).__name__}")
    archive = check(C.archive_new())
    try:
        for key, tensor in tensors.items():
            if not isinstance(key, str):
                raise TypeError(f"save: a name is a text, not {key!r}")
            tensor = as_tensor(tensor)  # which lives until the archive has its share
            check(C.archive_add(archive, key.encode(), tensor._handle))
        if shard_bytes is not None:
            check(C.save_safetensors_shards(name, archive, shard_bytes))
        else:
            check((C.save_npz if name.endswith(b".npz") else C.save_safetensors)(name, archive))
    finally:
        C.archive_free(archive)


def load(path, mapped=False):
    """What such a file, or an index of shards, holds: tensors by name, or one of .npy. With `mapped` those of
    safetensors lie in the file: they are only read, and nothing is read before it is looked at."""
    name = os.fsencode(path)
    if name.endswith(b".npy"):
        return call(C.load_npy, name)
    read = C.load_npz if name.endswith(b".npz") else C.map_safetensors if mapped else C.load_safetensors
    archive = check(read(name))
    try:
        return {C.archive_name(archive, i).decode(): call(C.archive_tensor, archive, i)
                for i in range(C.archive_count(archive))}
    finally:
        C.archive_free(archive)
