"""rapt for Python: tensors, gradients and training, by ctypes. No compiler, and numpy only where arrays are exchanged.

Ops have the names and parameters of rapt/ops.h without rapt_ (`python3 -c 'import rapt; help(rapt.sum)'`); those whose
first parameter is a tensor are methods too. An error of the library is a rapt.Error with its message."""
from . import _operators, _ops  # noqa: F401
from ._attention import AdditiveAttention, Attention, DotProductAttention, MultiHeadAttention, Rotary
from ._convolution import Conv1d, Conv2d, avg_pool1d, avg_pool2d, conv1d, conv2d, max_pool1d, max_pool2d
from ._graph import gradients, no_gradient
from ._library import C, DType, Error, check, library
from ._losses import cross_entropy, linear_cross_entropy, nll_loss
from ._models import GPT, GRU, LSTM, Transformer, TransformerDecoder, TransformerEncoder
from ._module import (Activation, BatchNorm, Dropout, Embedding, LayerNorm, Linear, Module, RMSNorm, Sequential, load,
                      save)
from ._op import Call, Op
from ._optimizer import (SGD, Adafactor, Adagrad, Adam, AdamW, Lion, Muon, Optimizer, RMSprop, Schedule)
from ._tensor import Tensor, from_dlpack, tensor, wrap

float32, float64, int64, int32, uint8, bool = DType
globals().update(_ops.NAMES)


def seed(value):
    """Starts the random generator of the calling thread anew: the same seed, the same numbers."""
    C.seed(value)


def set_threads(count):
    """The number of threads that ops use, 1 to 4096; results do not depend on it."""
    check(C.set_threads(count))


def get_threads():
    """The number of threads that ops use: 1 where the library was built without OpenMP."""
    return C.get_threads()
