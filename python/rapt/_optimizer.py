"""Optimizers and schedules of their learning rate."""
import ctypes
import os

from ._library import C, FixedOwner, check, flag, number_of, real, text, whole
from ._module import module_of
from ._tensor import handle_of

_ZERO = -1.0 / (1 << 60)  # RAPT_ZERO: a 0 in C means the default


def _config(**fields):
    return type("Config", (ctypes.Structure,), {"_fields_": list(fields.items())})


_RATE, _FLAG, _COUNT = ctypes.c_double, ctypes.c_bool, ctypes.c_int64
_SGD = _config(learning_rate=_RATE, momentum=_RATE, dampening=_RATE, weight_decay=_RATE, nesterov=_FLAG)
_ADAM = _config(learning_rate=_RATE, beta1=_RATE, beta2=_RATE, epsilon=_RATE, weight_decay=_RATE)
_RMSPROP = _config(learning_rate=_RATE, alpha=_RATE, epsilon=_RATE, momentum=_RATE, weight_decay=_RATE, centered=_FLAG)
_ADAGRAD = _config(learning_rate=_RATE, learning_rate_decay=_RATE, initial_accumulator=_RATE, epsilon=_RATE,
                   weight_decay=_RATE)
_LION = _config(learning_rate=_RATE, beta1=_RATE, beta2=_RATE, weight_decay=_RATE)
_MUON = _config(learning_rate=_RATE, momentum=_RATE, epsilon=_RATE, weight_decay=_RATE, iterations=ctypes.c_int,
                heavy_ball=_FLAG, match_rms=_FLAG, adamw=_ADAM)
_ADAFACTOR = _config(learning_rate=_RATE, beta2_decay=_RATE, epsilon1=_RATE, epsilon2=_RATE, clip=_RATE,
                     weight_decay=_RATE)
_GROUP = _config(learning_rate=_RATE, weight_decay=_RATE)
_SCHEDULE = _config(kind=ctypes.c_int, warm_up=_COUNT, period=_COUNT, factor=_RATE, total=_COUNT, final=_RATE,
                    start=_RATE, decay=_COUNT, curve=ctypes.c_int)
STRUCTS = {"rapt_sgd_config": _SGD, "rapt_adam_config": _ADAM, "rapt_rmsprop_config": _RMSPROP,
           "rapt_adagrad_config": _ADAGRAD, "rapt_lion_config": _LION, "rapt_muon_config": _MUON,
           "rapt_adafactor_config": _ADAFACTOR, "rapt_group_config": _GROUP, "rapt_schedule": _SCHEDULE}
SCHEDULES = ("constant", "step", "cosine", "inverse_square_root", "linear", "one_cycle", "warm_up_stable_decay")
CURVES = ("default", "linear", "cosine", "one_minus_square_root")


def _fill(struct, owner, named):
    """The struct with those fields; 0 of a number is a true zero, and a dictionary fills a struct inside."""
    types = dict(struct._fields_)
    if not hasattr(named, "keys"):
        raise TypeError(f"a dictionary of {', '.join(types)} expected, not {named!r}")
    if not named.keys() <= types.keys():
        raise TypeError(f"{owner} has no {', '.join(sorted(named.keys() - types.keys()))}; there are "
                        f"{', '.join(types)}")
    filled = {}
    for name, value in named.items():
        try:
            if issubclass(types[name], ctypes.Structure):
                value = _fill(types[name], name, value)
            elif types[name] in (_COUNT, ctypes.c_int):
                value = whole(types[name], value)
            elif types[name] is _RATE:
                value = real(value).value
            elif types[name] is _FLAG:
                value = flag(value)
        except (TypeError, OverflowError) as error:
            raise type(error)(f"{owner}: {name}: {error}") from None
        filled[name] = _ZERO if types[name] is _RATE and value == 0 else value
    return struct(**filled)


class Optimizer(FixedOwner):
    """Changes the parameters of a module. What is not given has the default that rapt/optimizer.h names."""
    _new = _config_type = None
    _instead = "its learning_rate can be set, other numbers when it is made, or for a group of parameters by group()"

    def __init__(self, module, **config):
        if self._new is None:
            raise TypeError("rapt.Optimizer is the base of the library's optimizers, not of one's own; "
                            "rapt.Adam(module) makes one, and so do the others")
        struct = _fill(self._config_type, type(self).__name__, config)
        module = module_of(module, cure="; it is the module that is given, not its parameters")
        self._handle = check(type(self)._new(module._handle, ctypes.addressof(struct)))

    def __del__(self, free=C.optimizer_free):
        handle, self._handle = getattr(self, "_handle", None), None
        if handle:
            free(handle)

    def step(self, clip=None):
        """Changes every parameter that has a gradient, and drops the gradients. With `clip`, the largest norm that they
        may have together, cuts them first and returns the norm before."""
        if clip is None:
            check(C.optimizer_step(self._handle))
            return None
        norm = ctypes.c_double()
        check(C.optimizer_step_clipped(self._handle, clip, ctypes.addressof(norm)))
        return norm.value

    def clear_gradients(self):
        C.optimizer_clear_gradients(self._handle)

    def clip_gradient_norm(self, limit):
        """Returns the norm before."""
        norm = ctypes.c_double()
        check(C.clip_gradient_norm(self._handle, limit, ctypes.addressof(norm)))
        return norm.value

    def add(self, name, parameter):
        """Has it change one more leaf, under a name that is not in use."""
        check(C.optimizer_add(self._handle, text(name, "add: name"), handle_of(parameter)))

    def group(self, pattern, learning_rate=None, weight_decay=None):
        """Numbers of their own for the parameters whose names match: group("*.bias", weight_decay=0)."""
        named = {"learning_rate": learning_rate, "weight_decay": weight_decay}
        struct = _fill(_GROUP, "group", {name: value for name, value in named.items() if value is not None})
        check(C.optimizer_group(self._handle, text(pattern, "group: pattern"), ctypes.addressof(struct)))

    def save(self, path):
        """A safetensors file of its steps, learning rate and what it keeps of each parameter."""
        archive = check(C.archive_new())
        try:
            check(C.optimizer_to_archive(self._handle, None, archive))
            check(C.save_safetensors(os.fsencode(path), archive))
        finally:
            C.archive_free(archive)

    def load(self, path):
        archive = check(C.load_safetensors(os.fsencode(path)))
        try:
            check(C.optimizer_from_archive(self._handle, None, archive))
        finally:
            C.archive_free(archive)
        return self

    @property
    def steps(self):
        """Taken so far."""
        return C.optimizer_get_steps(self._handle)

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


class RMSprop(Optimizer):
    _new, _config_type = C.rmsprop_new, _RMSPROP


class Adagrad(Optimizer):
    _new, _config_type = C.adagrad_new, _ADAGRAD


class Lion(Optimizer):
    _new, _config_type = C.lion_new, _LION


class Muon(Optimizer):
    """adamw: a dictionary, for the parameters that are no matrices."""
    _new, _config_type = C.muon_new, _MUON

    def by_adamw(self, pattern):
        """Leaves to AdamW also the matrices whose names match."""
        check(C.muon_by_adamw(self._handle, text(pattern, "by_adamw: pattern")))


class Adafactor(Optimizer):
    _new, _config_type = C.adafactor_new, _ADAFACTOR


for _kind in Optimizer.__subclasses__():
    _fields = ", ".join(name for name, _ in _kind._config_type._fields_)
    _kind.__doc__ = f"{Optimizer.__doc__} config: {_fields}. {_kind.__doc__ or ''}".rstrip()


class Schedule:
    __doc__ = f"""The factor of a learning rate at each step: Schedule("cosine", warm_up=100, total=1000)(step).

    kind: {", ".join(SCHEDULES)}; curve: {", ".join(CURVES)}. The other fields are those of rapt_schedule in
    rapt/schedule.h."""

    def __init__(self, kind, curve="default", **fields):
        self._made_of = {"kind": kind, "curve": curve, **fields}
        self._struct = _fill(_SCHEDULE, "Schedule", {"kind": number_of(kind, SCHEDULES, "kind"),
                                                     "curve": number_of(curve, CURVES, "curve"), **fields})

    def __reduce__(self):
        return _schedule_of, (self._made_of,)

    def __call__(self, step):
        factor = C.schedule_factor(ctypes.addressof(self._struct), step)
        check(factor == factor)
        return factor


def _schedule_of(fields):
    """What pickle makes one of."""
    return Schedule(**fields)
