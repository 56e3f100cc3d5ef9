"""The shared library and its functions: found, declared, and called so that an error is an exception."""
import atexit
import ctypes
import enum
import glob
import numbers
import os
import re
import threading

FILE = "librapt.so.0.2"  # of the series that this package calls


class DType(enum.IntEnum):
    """Element types, with the numbers of rapt_dtype."""
    float32 = 0
    float64 = 1
    int64 = 2
    int32 = 3
    uint8 = 4
    bool = 5

    def __repr__(self):
        return "rapt." + self.name

    def __str__(self):
        return repr(self)

    def __format__(self, specification):
        return format(str(self), specification)


class Error(Exception):
    """What rapt_error said; `code` is the number of rapt_error_code."""

    def __init__(self, message, code=0):
        super().__init__(message)
        self.code = code


def _find():
    """RAPT_LIBRARY in the environment, the library installed with this file (in PREFIX/share/rapt/python), or where the
    loader looks."""
    named, tried = os.environ.get("RAPT_LIBRARY"), []
    prefix = glob.escape(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4)))
    installed = [path for folder in ("lib*", "lib*/*") for path in glob.glob(f"{prefix}/{folder}/{FILE}")]
    for name in [named] if named else installed + [FILE]:
        try:
            return ctypes.CDLL(name)
        except OSError as reason:
            tried.append(str(reason))
    raise ImportError(f"rapt: {FILE} is not found ({'; '.join(tried)}). Install it (./run install) or name it in "
                      "RAPT_LIBRARY")


library = _find()


def whole(c_type, value):
    """A whole number for C; ctypes by itself leaves out what is too large."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"a whole number expected, not {value!r}")
    number = c_type(value)
    if number.value != value:
        raise OverflowError(f"{shown(value)} does not fit into {8 * ctypes.sizeof(c_type)} bits")
    return number


def shown(value):
    """The number, or its size where Python would print thousands of digits, or refuse to."""
    long = isinstance(value, int) and value.bit_length() > 256
    return f"a number of {value.bit_length()} bits" if long else value


def keep_for_ever(thing):
    """For what C may call until the process ends, when Python has taken its modules apart. Such a function finds what
    it needs in its own defaults."""
    if hasattr(ctypes, "pythonapi"):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing


def int64(value):
    return whole(ctypes.c_int64, value)


def integer(value):
    return whole(ctypes.c_int, value)


def seed_of(value):
    """64 bits, with a sign or without."""
    return whole(ctypes.c_int64 if not hasattr(value, "__index__") or value < 0 else ctypes.c_uint64, value).value


def real(value):
    """A number for C's double, which has not all whole numbers beyond 2 ** 53."""
    if not hasattr(value, "__float__") and not hasattr(value, "__index__"):
        raise TypeError(f"a number expected, not {value!r}")
    number = ctypes.c_double(value)
    if isinstance(value, numbers.Integral) and number.value != int(value):
        raise OverflowError(f"{value} is no double; {number.value!r} is")
    return number


def flag(value, what=None):
    """1 or 0 for C. (numpy's truth values are no indices.)"""
    if isinstance(value, str) or not hasattr(value, "__int__"):
        raise TypeError(f"{what + ': ' if what else ''}True or False expected, not {value!r}")
    return int(bool(value))


def text(value, what=None):
    """Bytes that C reads to their end. None stays None, but where it is said what has to be there."""
    named = f"{what}: " if what else ""
    if isinstance(value, str):
        value = value.encode()
    if not isinstance(value, bytes) and (what or value is not None):
        raise TypeError(f"{named}a text expected, not {value!r}")
    if value is not None and b"\0" in value:
        raise ValueError(f"{named}a text without NUL expected, not {value!r}")
    return value


# What becomes of values before ctypes has them: what comes up while it converts one, Ctrl-C too, is its ArgumentError.
CONVERT = {"d": real, "l": int64, "u": seed_of, "i": integer, "y": integer, "r": integer, "b": flag, "z": text}


class Mark(ctypes.c_int64):
    """rapt_scope; of a class of its own, so that ctypes makes no int of it and takes it as it is: between `finally` and
    the end of a scope there is no function of Python's, where Ctrl-C or the end of the stack would leave it open."""


# Kinds of parameters, a letter each: t tensor, o tensor or None, T list of tensors, d double, l int64, u seed, i int,
# b bool, s shape, a axes (None: all), y dtype, r reduction, f activation, p pointer, z text, m mark of a scope.
POINTER, SHAPE, AXES = ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int)
C_TYPES = {"t": [POINTER], "o": [POINTER], "T": [ctypes.c_int, ctypes.POINTER(POINTER)], "d": [ctypes.c_double],
           "l": [ctypes.c_int64], "u": [ctypes.c_uint64], "i": [ctypes.c_int], "b": [ctypes.c_bool],
           "s": [ctypes.c_int, SHAPE], "a": [ctypes.c_int, AXES], "y": [ctypes.c_int], "r": [ctypes.c_int],
           "f": [ctypes.c_int], "p": [POINTER], "z": [ctypes.c_char_p], "m": []}
RESULTS = {"t": POINTER, "p": POINTER, "d": ctypes.c_double, "l": ctypes.c_int64, "i": ctypes.c_int,
           "b": ctypes.c_bool, "z": ctypes.c_char_p, "m": Mark, "v": None}

# What is called from this package beside the ops: the kind of its result, its name, its parameters.
FUNCTIONS = """
z error; i error_get_code; v clear_error
m scope_begin; v scope_end m; t retain t; v release t
i get_dtype t; i rank t; l count t; p shape t; l stride ti; p data t; p data_for_writing t; l version t; z dtype_name y
t from ysp; t wrap yspppp; t wrap_read_only yspppp; t detach t; t clone t
p to_dlpack t; p to_dlpack_unversioned t; t from_dlpack p; t from_dlpack_unversioned p
v python_set p; v python_capsule_destructor p
t require_gradient t; t refuse_gradient t; b requires_gradient t; t gradient t; v clear_gradient t
t sort tibp; t topk tilbp; b split tisp; t batch_normalize toodpp
t cross_entropy ttp; t nll_loss ttp; t linear_cross_entropy ttotp
b backward_from Tpi; b gradients TpTpi; b is_recording; b set_recording b; v seed u
b set_threads i; i get_threads
b fill td; b copy tt; b add_in_place ttd; b scale_in_place td
t apply ppT; i call_count p; t call_input pi; v call_save pt; v call_save_output pi; t call_saved pi; t call_gradient pi
b call_wants pi; b call_give pit; b fail izz
p archive_new; v archive_free p; b archive_add pzt; l archive_count p; z archive_name pl; t archive_tensor pl
b save_safetensors zp; p load_safetensors z; p map_safetensors z; b save_safetensors_shards zpl
b save_npz zp; p load_npz z; b save_npy zt; t load_npy z
p module_retain p; v module_free p; t module_forward pt; v module_train pb; b module_cast py
b module_save pz; b module_load pz; l module_parameter_count p; p module_list pi; v tensor_list_free p
v module_clear_gradients p; i module_freeze pzb
p linear_new lli; p embedding_new ll; p layer_norm_new li; p rms_norm_new l; p batch_norm_new l
p dropout_new d; p activation_new zp; p sequential_new ip
p sgd_new pp; p adam_new pp; p adamw_new pp; p rmsprop_new pp; p adagrad_new pp; p lion_new pp; p muon_new pp
b muon_by_adamw pz; p adafactor_new pp; b optimizer_group pzp; d schedule_factor pl
v optimizer_free p; b optimizer_step p; v optimizer_clear_gradients p
p dot_product_attention_new d; p additive_attention_new llld; t attention_forward ptttp
p gru_new llid; p bidirectional_gru_new llid; t gru_forward pttp; t gru_forward_padded ptttp
p lstm_new llid; p bidirectional_lstm_new llid; t lstm_forward ptttpp; t lstm_forward_padded pttttpp
t conv1d tttp; t conv2d tttp; p conv1d_layer_new lllpi; p conv2d_layer_new llppi
t max_pool1d tp; t max_pool2d tp; t avg_pool1d tp; t avg_pool2d tp
p transformer_encoder_new p; t transformer_encoder_forward ptpp
p transformer_decoder_new p; t transformer_decoder_forward pttppp
p transformer_new p; t transformer_forward pttppp
p gpt_new p; t gpt_forward ptp; t gpt_hidden ptt; t gpt_loss pttp; p gpt_cache_new p; v gpt_cache_free p; t generate ptp
p fields_of zp; p multi_head_attention_new p; p rotary_new; t multi_head_attention_forward ptttpp
d optimizer_get_learning_rate p; b optimizer_set_learning_rate pd; l optimizer_get_steps p; b clip_gradient_norm pdp
b optimizer_step_clipped pdp; b optimizer_prepare p; b optimizer_add pzt
b optimizer_to_archive pzp; b optimizer_from_archive pzp
"""

# Ops and constructors that give one tensor: NAME PARAMETER:KIND[=DEFAULT] ...
OPS = """
empty shape:s dtype:y=0; zeros shape:s dtype:y=0; ones shape:s dtype:y=0; full shape:s value:d dtype:y=0
rand shape:s dtype:y=0; randn shape:s dtype:y=0; randint low:l high:l shape:s; randperm count:l; eye size:l dtype:y=0
arange start:d stop:d step:d=1.0 dtype:y=0; linspace first:d last:d count:l dtype:y=0
empty_like x:t; zeros_like x:t; ones_like x:t; full_like x:t value:d; rand_like x:t; randn_like x:t
add a:t b:t; sub a:t b:t; mul a:t b:t; div a:t b:t; pow a:t b:t; maximum a:t b:t; minimum a:t b:t
add_scalar x:t value:d; mul_scalar x:t value:d; pow_scalar x:t exponent:d; maximum_scalar x:t value:d
minimum_scalar x:t value:d
neg x:t; abs x:t; exp x:t; log x:t; expm1 x:t; log1p x:t; sqrt x:t; rsqrt x:t; sin x:t; cos x:t; tanh x:t; sigmoid x:t
erf x:t; sign x:t; floor x:t; ceil x:t; round x:t; relu x:t
gelu x:t; gelu_tanh x:t; silu x:t; softplus x:t; mish x:t; leaky_relu x:t slope:d=0.01; elu x:t alpha:d=1.0
clamp x:t low:d high:d
equal a:t b:t; not_equal a:t b:t; less a:t b:t; less_equal a:t b:t; greater a:t b:t; greater_equal a:t b:t
equal_scalar x:t value:d; not_equal_scalar x:t value:d; less_scalar x:t value:d; less_equal_scalar x:t value:d
greater_scalar x:t value:d; greater_equal_scalar x:t value:d
logical_and a:t b:t; logical_or a:t b:t; logical_not x:t; isfinite x:t; where condition:t a:t b:t
masked_fill x:t mask:t value:d; triu x:t diagonal:l=0; tril x:t diagonal:l=0
cast x:t dtype:y
sum x:t axes:a=None keep:b=False; mean x:t axes:a=None keep:b=False; max x:t axes:a=None keep:b=False
any x:t axes:a=None keep:b=False; all x:t axes:a=None keep:b=False
prod x:t axes:a=None keep:b=False; norm x:t order:d=2.0 axes:a=None keep:b=False
min x:t axes:a=None keep:b=False; logsumexp x:t axes:a=None keep:b=False
var x:t axes:a=None keep:b=False correction:i=1; std x:t axes:a=None keep:b=False correction:i=1
argmax x:t axis:i keep:b=False; argmin x:t axis:i keep:b=False; cumsum x:t axis:i; cumprod x:t axis:i
argsort x:t axis:i=-1 descending:b=False; multinomial weights:t count:l replace:b=False
einsum equation:z tensors:T; outer a:t b:t
matmul a:t b:t; affine x:t weight:t bias:o=None; affine_activation x:t weight:t bias:o activation:f dropout:d=0.0
reshape x:t shape:s; transpose x:t axis:i=-2 other_axis:i=-1; permute x:t axes:a
slice x:t axis:i start:l stop:l step:l=1; select x:t axis:i index:l; expand x:t shape:s; squeeze x:t axis:i
unsqueeze x:t axis:i; contiguous x:t
concat tensors:T axis:i=0; stack tensors:T axis:i=0; pad x:t axis:i before:l after:l value:d=0.0; flip x:t axes:a
roll x:t axis:i shift:l; tile x:t repeats:s; repeat_interleave x:t axis:i repeats:l
flatnonzero x:t; embed table:t indices:t; index_select x:t axis:i indices:t; gather x:t axis:i indices:t
scatter_add x:t axis:i indices:t source:t
scatter x:t axis:i indices:t source:t; one_hot indices:t classes:l dtype:y=0
softmax x:t axis:i=-1; log_softmax x:t axis:i=-1; sparsemax x:t axis:i=-1; entmax15 x:t axis:i=-1
layer_normalize x:t weight:o=None bias:o=None epsilon:d=1e-5; rms_normalize x:t weight:o=None epsilon:d=1e-6
drop x:t probability:d
mse_loss input:t target:t reduction:r='mean'; l1_loss input:t target:t reduction:r='mean'
huber_loss input:t target:t delta:d=1.0 reduction:r='mean'; bce_with_logits logits:t targets:t reduction:r='mean'
kl_div input:t target:t reduction:r='mean'
"""

# Where C has the dtype first.
DTYPE_FIRST = {"empty", "zeros", "ones", "full", "rand", "randn", "arange", "linspace", "eye"}


def entries(text):
    """The entries of the tables above, each as a list of words."""
    return [entry.split() for line in text.strip().splitlines() for entry in line.split(";") if entry.strip()]


def _declare(name, result, kinds):
    function = getattr(library, "rapt_" + name, None)
    if function is None:
        raise ImportError(f"rapt: {library._name} has no rapt_{name}: it is of another version than this package")
    function.argtypes = [c_type for kind in kinds for c_type in C_TYPES[kind]]
    function.restype = RESULTS[result]
    return function


def _converting(name, function, kinds):
    """The function, which converts what it is given first; an error has its name."""
    places, count = [], 0
    for kind in kinds:
        if kind in CONVERT:
            places.append((count, CONVERT[kind]))
        count += len(C_TYPES[kind])

    def call(*arguments):
        values = list(arguments)
        try:
            for place, convert in places:
                values[place] = convert(values[place])
        except (TypeError, ValueError, OverflowError) as error:
            raise type(error)(f"{name}: {error}") from None
        return function(*values)

    return call if places else function


class _Functions:
    """The functions of FUNCTIONS, which convert, and of OPS, which do not, under their names without rapt_."""


C = _Functions()
for _result, _name, *_kinds in entries(FUNCTIONS):
    setattr(C, _name, _converting(_name, _declare(_name, _result, "".join(_kinds)), "".join(_kinds)))
for _name, *_parameters in entries(OPS):
    _kinds = [parameter.split(":")[1][0] for parameter in _parameters]
    if _name in DTYPE_FIRST:
        _kinds.insert(0, _kinds.pop())
    setattr(C, _name, _declare(_name, "t", _kinds))

# A scope that something left open nevertheless ends while Python can be called: its tensors may be those of arrays.
_outermost = C.scope_begin()
C.scope_end(_outermost)
atexit.register(C.scope_end, _outermost)

# What messages advise in C's words; an op has its name in Python too.
_IN_PYTHON = {"RAPT_RETAIN_GRAPH": "retain_graph=True", "RAPT_NO_GRADIENT": "rapt.no_gradient",
              "rapt_require_gradient": "Tensor.require_gradient", "rapt_detach": "Tensor.detach",
              "rapt_from": "rapt.tensor", "rapt_generate": "GPT.generate",
              "rapt_module_cast": "Module.cast", "rapt_module_train": "Module.train",
              "rapt_optimizer_clear_gradients": "Optimizer.clear_gradients",
              "rapt_optimizer_set_learning_rate": "Optimizer.learning_rate",
              "RAPT_PARAMETERS": "1 (parameters)", "RAPT_BUFFERS": "2 (buffers)",
              **{"rapt_" + name: "rapt." + name for name, *_ in entries(OPS)}}
raised = threading.local()  # the exception of a callback, until the call that led to it has returned


def check(good):
    """Raises what went wrong if the result of a call says so: None (NULL) or False."""
    if good is not None and good is not False:
        return good
    message, code = C.error() or b"rapt: failed, and said nothing", C.error_get_code()
    C.clear_error()
    cause, raised.exception = getattr(raised, "exception", None), None
    if cause is not None:
        raise cause
    message = message.decode(errors="replace")
    # But what is quoted, names of files and tensors, stays as it is.
    raise Error(re.sub(r"'[^']*'|\b(rapt|RAPT)_\w+", lambda found: _IN_PYTHON.get(found[0], found[0]), message), code)


REDUCTIONS = ("mean", "sum", "none")
ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")


def number_of(word, words, what):
    """The place of a word in an enumeration."""
    if word not in words:
        raise ValueError(f"{what} is {word!r}; one of {', '.join(words)} expected")
    return words.index(word)


def several(value, what):
    """A whole number, or as many as there are, as a tuple."""
    numbers = tuple(value) if hasattr(value, "__iter__") and not isinstance(value, str) else (value,)
    if not all(hasattr(number, "__index__") for number in numbers):
        raise TypeError(f"{what}: a whole number, or some of them, expected, not {value!r}")
    return numbers


def _array_of(c_type, numbers):
    """(count, numbers) for C."""
    return len(numbers), (c_type * len(numbers))(*[whole(c_type, number) for number in numbers])


def shape_of(numbers):
    """(rank, sizes) for C."""
    return _array_of(ctypes.c_int64, several(numbers, "shape"))


def axes_of(numbers):
    """(count, axes) for C; None: all."""
    return (0, None) if numbers is None else _array_of(ctypes.c_int, several(numbers, "axes"))


class Owner:
    """What has a share in an object of the library, which no other has: a copy of it would give the share back, too."""
    __slots__ = ()

    def __reduce_ex__(self, protocol):
        raise TypeError(f"copy and pickle do not reach what a rapt.{type(self).__name__} stands for in the library; "
                        "clone() copies a tensor, save() writes files")


class FixedOwner(Owner):
    """One whose classes in this package take no new attributes, which nobody would read; a user's own may have some."""
    __slots__ = ()
    _instead = None

    def __setattr__(self, name, value):
        kind = type(self)
        if (kind.__module__.rpartition(".")[0] == __package__ and not name.startswith("_") and
                not isinstance(getattr(kind, name, None), property)):
            raise AttributeError(f"{kind.__name__} has no {name} to set; {self._instead}")
        super().__setattr__(name, value)
