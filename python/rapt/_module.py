"""Layers, optimizers and files."""
import ctypes

from ._library import C, check, library
from ._tensor import Tensor, as_tensor, borrowed, call


class _List(ctypes.Structure):
    """rapt_tensor_list."""
    _fields_ = [("count", ctypes.c_int), ("tensors", ctypes.POINTER(ctypes.c_void_p)),
                ("names", ctypes.POINTER(ctypes.c_char_p))]


class Module:
    """A layer; calling it runs its forward. Names, shapes and initial values are PyTorch's."""

    def __init__(self, handle):
        self._handle, self._adopted = check(handle), False

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
        return call(C.module_forward, self._handle, x._handle)

    def train(self, training=True):
        C.module_train(self._handle, training)
        return self

    def parameters(self, what=1):
        """Tensors by full name; what: 1 parameters, 2 buffers, 3 both."""
        pointer = check(C.module_list(self._handle, what))
        found = _List.from_address(pointer)
        result = {found.names[i].decode(): borrowed(found.tensors[i]) for i in range(found.count)}
        C.tensor_list_free(pointer)
        return result

    def clear_gradients(self):
        C.module_clear_gradients(self._handle)

    def save(self, path):
        """A safetensors file."""
        check(C.module_save(self._handle, str(path).encode()))

    def load(self, path):
        check(C.module_load(self._handle, str(path).encode()))
        return self


class Linear(Module):
    def __init__(self, inputs, outputs, bias=True):
        super().__init__(C.linear_new(inputs, outputs, int(bias)))


class Embedding(Module):
    def __init__(self, count, size):
        super().__init__(C.embedding_new(count, size))


class LayerNorm(Module):
    def __init__(self, size, bias=True):
        super().__init__(C.layer_norm_new(size, int(bias)))


class Dropout(Module):
    def __init__(self, probability):
        super().__init__(C.dropout_new(probability))


class Activation(Module):
    """An op of one tensor as a layer: Activation("tanh")."""

    def __init__(self, name):
        function = getattr(library, "rapt_" + name)
        super().__init__(C.activation_new(name.encode(), ctypes.cast(function, ctypes.c_void_p)))


class Sequential(Module):
    def __init__(self, *layers):
        handles = (ctypes.c_void_p * max(1, len(layers)))(*[layer._adopt() for layer in layers])
        super().__init__(C.sequential_new(len(layers), ctypes.cast(handles, ctypes.c_void_p)))


def _config(*names):
    return type("Config", (ctypes.Structure,), {"_fields_": list(names)})


_NUMBER = ctypes.c_double
_SGD = _config(("learning_rate", _NUMBER), ("momentum", _NUMBER), ("dampening", _NUMBER), ("weight_decay", _NUMBER),
               ("nesterov", ctypes.c_bool))
_ADAM = _config(("learning_rate", _NUMBER), ("beta1", _NUMBER), ("beta2", _NUMBER), ("epsilon", _NUMBER),
                ("weight_decay", _NUMBER))
STRUCTS = {"rapt_sgd_config": _SGD, "rapt_adam_config": _ADAM}


class Optimizer:
    """Changes the parameters of a module. What is not given has the default that rapt/optimizer.h names."""
    _new = _config_type = None

    def __init__(self, module, **config):
        unknown = config.keys() - {name for name, _ in self._config_type._fields_}
        if unknown:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        zero = -1.0 / (1 << 60)  # RAPT_ZERO: a 0 in C means the default
        config = {name: zero if value == 0 and not isinstance(value, bool) else value for name, value in config.items()}
        struct = self._config_type(**config)
        self._handle = check(type(self)._new(module._handle, ctypes.addressof(struct)))

    def __del__(self, free=C.optimizer_free):
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            free(handle)

    def step(self):
        """Changes every parameter that has a gradient, and drops the gradients."""
        check(C.optimizer_step(self._handle))

    def clear_gradients(self):
        C.optimizer_clear_gradients(self._handle)

    def clip_gradient_norm(self, limit):
        """Returns the norm before."""
        norm = ctypes.c_double()
        check(C.clip_gradient_norm(self._handle, limit, ctypes.addressof(norm)))
        return norm.value

    @property
    def learning_rate(self):
        return C.optimizer_get_learning_rate(self._handle)

    @learning_rate.setter
    def learning_rate(self, value):
        check(C.optimizer_set_learning_rate(self._handle, value))


class SGD(Optimizer):
    _new, _config_type = C.sgd_new, _SGD


class Adam(Optimizer):
    _new, _config_type = C.adam_new, _ADAM


class AdamW(Optimizer):
    _new, _config_type = C.adamw_new, _ADAM


# --- files ---

def save(path, tensors, shard_bytes=None):
    """Writes tensors by name as .safetensors or .npz, or one tensor as .npy; as .safetensors.index.json in shards of at
    most shard_bytes each."""
    name = str(path).encode()
    if isinstance(tensors, Tensor):
        check(C.save_npy(name, tensors._handle))
        return
    archive = check(C.archive_new())
    try:
        for key, tensor in tensors.items():
            check(C.archive_add(archive, key.encode(), as_tensor(tensor)._handle))
        if shard_bytes is not None:
            check(C.save_safetensors_shards(name, archive, shard_bytes))
        else:
            check((C.save_npz if name.endswith(b".npz") else C.save_safetensors)(name, archive))
    finally:
        C.archive_free(archive)


def load(path, mapped=False):
    """What such a file, or an index of shards, holds: tensors by name, or one of .npy. With `mapped` those of
    safetensors lie in the file: they are only read, and nothing is read before it is looked at."""
    name = str(path).encode()
    if name.endswith(b".npy"):
        return call(C.load_npy, name)
    read = C.load_npz if name.endswith(b".npz") else C.map_safetensors if mapped else C.load_safetensors
    archive = check(read(name))
    try:
        return {C.archive_name(archive, i).decode(): call(C.archive_tensor, archive, i)
                for i in range(C.archive_count(archive))}
    finally:
        C.archive_free(archive)
