"""Operators of tensors: + - * / ** @ & | ~ and comparisons, with tensors, arrays and numbers."""
from numbers import Integral, Real

from ._library import DType, Error, shown
from ._ops import NAMES
from ._tensor import Tensor, as_tensor, tensor


def _operator(name, scalar, turned=False):
    """a OP b, where b may be a number."""
    both = NAMES[name]

    def apply(self, other):
        if isinstance(other, Tensor):
            return both(self, other)
        if not isinstance(other, Real):
            other = as_tensor(other)
            return both(other, self) if turned else both(self, other)
        other = int(other) if isinstance(other, Integral) else float(other)
        if isinstance(other, int) and abs(other) > 1 << 53:  # C's double has not all of these
            other = _number(self, other)
            return both(other, self) if turned else both(self, other)
        return scalar(self, other)
    return apply


def _less(x, value):
    """x - value, where an integer dtype may have the value, but not -value."""
    return x.add_scalar(-value) if x.dtype in (DType.float32, DType.float64) else x.sub(_number(x, value))


def _number(x, value):
    """The number as a tensor of x's dtype."""
    if x.dtype in (DType.float32, DType.float64):
        return NAMES["full"]((), float(value), x.dtype)
    if value % 1 or (x.dtype is DType.bool and value not in (0, 1)):  # NaN % 1 is NaN
        raise Error(f"{shown(value)} is not a number of type {x.dtype.name}, which the tensor has")
    return tensor(int(value), x.dtype)


_n = NAMES
Tensor.__add__ = Tensor.__radd__ = _operator("add", _n["add_scalar"])
Tensor.__mul__ = Tensor.__rmul__ = _operator("mul", _n["mul_scalar"])
Tensor.__sub__ = _operator("sub", _less)
Tensor.__rsub__ = _operator("sub", lambda x, value: x.neg().add_scalar(value), True)
Tensor.__truediv__ = _operator("div", lambda x, value: x.div(_number(x, value)))
Tensor.__rtruediv__ = _operator("div", lambda x, value: _number(x, value).div(x), True)
Tensor.__pow__ = _operator("pow", _n["pow_scalar"])
Tensor.__rpow__ = _operator("pow", lambda x, value: _number(x, value).pow(x), True)
for _name, _word in (("matmul", "matmul"), ("and", "logical_and"), ("or", "logical_or")):
    setattr(Tensor, f"__{_name}__", lambda self, other, op=_n[_word]: op(self, as_tensor(other)))
    setattr(Tensor, f"__r{_name}__", lambda self, other, op=_n[_word]: op(as_tensor(other), self))
Tensor.__invert__ = _n["logical_not"]
Tensor.__neg__, Tensor.__abs__ = _n["neg"], _n["abs"]
Tensor.__lt__, Tensor.__le__ = _operator("less", _n["less_scalar"]), _operator("less_equal", _n["less_equal_scalar"])
Tensor.__gt__, Tensor.__ge__ = (_operator("greater", _n["greater_scalar"]),
                                _operator("greater_equal", _n["greater_equal_scalar"]))


def _equality(name, scalar):
    """As the other comparisons, but that nothing equals None or a text."""
    compare = _operator(name, scalar)
    return lambda self, other: NotImplemented if other is None or isinstance(other, str) else compare(self, other)


Tensor.__eq__ = _equality("equal", _n["equal_scalar"])
Tensor.__ne__ = _equality("not_equal", _n["not_equal_scalar"])
Tensor.__hash__ = object.__hash__
Tensor.T = property(lambda self: self.transpose())
