"""The dtype of every sub-expression by NumPy's promotion (NEP 50), for oracle and compiler alike.

A literal is weak: it takes the dtype of the other operands when that can hold its kind of number.
An operand is strong, also a scalar (a 0-d array). The result dtype of an operator is found by
evaluating it on an empty array.

No arithmetic is in 16 bits: elements of float16 and bfloat16 are read as float32, and a result of
such a type is rounded to it once, at the end (`computed_dtype`).

    float32 * 2 -> float32    int8 * 2 -> int8        int8 * 2.0 -> float64      bool + 2 -> int64
    int8 / int8 -> float64    int8 + uint8 -> int16   float32 + 2j -> complex64
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, assert_never

import numpy as np

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import NumberOverflowError, OperandError, OperandTypeError
from taco_py.language.diagnostics.source import Span
from taco_py.language.notation.functions.averages import spelled
from taco_py.language.notation.half_types import computed_dtype, number_kind
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, MUL, NEG, SUB, Operator

DType = np.dtype[Any]

# Kinds of numbers from narrow to wide, and the dtype of a literal of that kind that stands alone.
_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_DEFAULT = {1: np.dtype(np.int64), 2: np.dtype(np.float64), 3: np.dtype(np.complex128)}


def common_dtype(dtypes: Iterable[DType]) -> DType:
    """Return the promoted dtype of `dtypes`. Raises OperandTypeError where NumPy has none.

    The types of ml_dtypes have none with float16 or with integers of more than 8 bits.
    """
    dtypes = tuple(dtypes)
    try:
        return np.result_type(*dtypes)
    except TypeError:
        raise OperandTypeError(
            "Expected dtypes that NumPy has a common one for, found "
            f"{' and '.join(dict.fromkeys(map(str, dtypes)))}",
            hint="convert one of the operands first, for instance with A.astype(np.float32)",
        ) from None


def dtype_of_number(value: complex, dtypes: Iterable[DType]) -> DType:
    """Return the dtype of a Python number among operands of `dtypes`, as in NumPy's arithmetic.

    Raises OperandTypeError as `common_dtype`.
    """
    common = common_dtype(dtypes)
    if common.kind != "V":
        return np.result_type(common, value)
    wide = {float: np.dtype(np.float32), complex: np.dtype(np.complex64)}  # so ml_dtypes has it
    return wide.get(type(value), common)


@dataclass(frozen=True, slots=True)
class _Typed:
    """The dtype of an expression; also its value if it consists of literals alone (weak)."""

    dtype: DType
    value: Any = None

    @property
    def weak(self) -> bool:
        return self.value is not None


def result_dtype(assignment: Assignment, dtypes: Mapping[str, DType]) -> DType:
    """Return the dtype of the left-hand side for the operands' dtypes, given by name.

    `y = value` has the dtype of the value. `y += value` keeps the dtype of `y` if `dtypes` has it
    (NumPy's in-place rule), and otherwise creates `y` with the dtype of the value.

    Raises:
        OperandError: an operand has no dtype here.
        OperandTypeError: an operator does not take these dtypes, or `y += value` would lose a kind
            of number.
    """
    value = _typed(assignment.value, dtypes).dtype
    name = assignment.target.tensor
    if assignment.operator is None or name not in dtypes:
        return value
    return in_place_dtype(assignment, value, np.dtype(dtypes[name]))


def in_place_dtype(assignment: Assignment, value: DType, target: DType) -> DType:
    """Return the target's dtype, which `target += value` has.

    Raises OperandTypeError where the conversion would lose a kind of number.
    """
    name = assignment.target.tensor
    if not np.can_cast(value, target, "same_kind"):
        raise OperandTypeError(
            f"Expected a right-hand side that can be added to {name} in its dtype {target}, found "
            f"dtype {value}",
            assignment.span,
            hint=f"convert {name} to {np.promote_types(value, target)} first",
        )
    return target


def expression_dtype(expr: Expr, dtypes: Mapping[str, DType]) -> DType:
    """Return the dtype that `expr` is computed in, for the operands' dtypes, given by name.

    Sums keep the dtype of their terms, as in `numpy.einsum`. Where a text sums small integers,
    `wide_sums` converts the operands to `sum_dtype` first.

    Raises:
        OperandError: an operand has no dtype here.
        OperandTypeError: an operator does not take these dtypes, or an integer literal does not
            fit.
    """
    return computed_dtype(value_dtype(expr, dtypes))


def value_dtype(expr: Expr, dtypes: Mapping[str, DType]) -> DType:
    """Return the dtype that the value of `expr` is stored in, which may be a 16-bit type.

    Raises as `expression_dtype`.
    """
    return _typed(expr, dtypes).dtype


def sum_dtype(terms: DType, target: DType | None = None) -> DType:
    """Return the dtype that `numpy.sum` gives to terms of one dtype.

    target  the dtype of the tensor that `+=` accumulates into, which decides as in NumPy's in-place
            addition

    >>> sum_dtype(np.dtype("int8")), sum_dtype(np.dtype("uint16")), sum_dtype(np.dtype("float32"))
    (dtype('int64'), dtype('uint64'), dtype('float32'))
    """
    if terms.kind not in "biu" or terms.itemsize == 8:
        return terms
    if target is not None:
        return np.promote_types(terms, target)
    return np.dtype(np.uint64 if terms.kind == "u" else np.int64)


def answers(call: Call, dtypes: Mapping[str, DType]) -> bool:
    """Tell whether an operation has another dtype than its arguments, or would for numbers.

    A comparison yields truths, also where it compares truths. It is computed in the dtype of its
    arguments even inside a sum: the sum of `not a[i]` adds up truths. So are operations that depend
    on the width of a type: the sum of `~a[i]` of uint8 adds up numbers below 256.
    """
    operands = operand_dtype(call, dtypes)
    if operands.kind in call.operator.of_width:
        return True
    if operands.kind != "b":
        return expression_dtype(call, dtypes) != operands
    numbers = replace(call, args=tuple(Literal(1, dtype="int64") for _ in call.args))
    return call.operator.of_truths is not None or expression_dtype(numbers, {}).kind == "b"


def operand_dtype(call: Call, dtypes: Mapping[str, DType]) -> DType:
    """Return the dtype in which `call` is computed, to which it converts its arguments.

    It is also the dtype of the result, except for operators such as comparisons. For comparisons of
    signed with unsigned integers of 64 bits it is `object`, that of Python's integers: no other
    dtype holds all of their numbers (`argument_dtype`).

    Raises:
        OperandError, OperandTypeError: as `expression_dtype`.
    """
    return computed_dtype(_operand_dtype(call, [_typed(arg, dtypes) for arg in call.args]))


def argument_dtype(call: Call, arg: Expr, dtypes: Mapping[str, DType]) -> DType:
    """Return the dtype that an argument of `call` is converted to.

    It is `operand_dtype`, or the argument's 64-bit integer type where no dtype holds both.
    """
    dtype = operand_dtype(call, dtypes)
    if dtype.kind != "O":
        return dtype
    return np.dtype(np.uint64 if expression_dtype(arg, dtypes).kind == "u" else np.int64)


def check_literal(expr: Expr, dtype: DType, dtypes: Mapping[str, DType]) -> None:
    """Raise NumberOverflowError where `expr` is an integer literal that `dtype` cannot hold."""
    if dtype.kind in "iu":
        _check_fits(_typed(expr, dtypes), dtype, expr.span)


def is_weak(expr: Expr) -> bool:
    """Tell whether `expr` consists of literals alone, so that it adapts to other dtypes."""
    match expr:
        case Literal():
            return expr.dtype is None and not isinstance(expr.value, bool)
        case Call():
            return all(map(is_weak, expr.args))
        case Access() | Reduce():
            return False
        case _:
            assert_never(expr)


def _typed(expr: Expr, dtypes: Mapping[str, DType]) -> _Typed:
    match expr:
        case Access():
            return _Typed(_access_dtype(expr, dtypes))
        case Literal():
            return _literal(expr)
        case Call():
            return _call(expr, [_typed(arg, dtypes) for arg in expr.args])
        case Reduce():
            dtype = _typed(expr.body, dtypes).dtype
            check_defined(expr, dtype)
            return _Typed(dtype)
        case _:
            assert_never(expr)


def check_defined(expr: Call | Reduce, dtype: DType) -> None:
    """Raise OperandTypeError where an operator is not defined for arguments of a dtype."""
    computed, loops = computed_dtype(dtype), expr.operator.loops
    if computed.kind not in expr.operator.kinds or (loops and computed.name not in loops):
        raise _not_defined(expr, dtype)


def _access_dtype(access: Access, dtypes: Mapping[str, DType]) -> DType:
    if access.is_number and access.tensor not in dtypes:  # an index as a number
        return np.dtype(np.int64)
    if access.tensor not in dtypes:
        raise OperandError(
            f"Expected an operand named {access.tensor}, found {', '.join(dtypes) or 'none'}",
            access.span,
        )
    dtype = np.dtype(dtypes[access.tensor])
    if number_kind(dtype) not in _RANK:
        raise OperandTypeError(
            f"Expected numbers in {access.tensor}, found dtype {dtype}",
            access.span,
            hint="convert it to a NumPy dtype of booleans, integers, or real or complex numbers",
        )
    return dtype


def _literal(literal: Literal) -> _Typed:
    if literal.dtype is not None:
        return _Typed(np.dtype(literal.dtype))
    dtype = np.asarray(literal.value).dtype
    return _Typed(dtype) if dtype.kind == "b" else _Typed(dtype, literal.value)


def _call(call: Call, args: list[_Typed]) -> _Typed:
    dtype = _operand_dtype(call, args)
    if not all(arg.weak for arg in args):
        return _Typed(_evaluated(call, [np.empty(0, dtype) for _ in args]).dtype)
    with np.errstate(all="ignore"):
        value = _evaluated(call, [np.asarray(arg.value).astype(dtype) for arg in args])
    if value.dtype.kind in "iu":
        _check_wraps(call, value, args)
    return _Typed(value.dtype, value)


def _check_wraps(call: Call, value: np.ndarray[Any, Any], args: Iterable[_Typed]) -> None:
    """Raise NumberOverflowError where the exact value of literals differs, thus by 2^64 or more."""
    if call.operator not in (ADD, SUB, MUL, NEG):
        return
    exact = call.operator.evaluate(*(np.asarray(arg.value, np.float64) for arg in args))
    if abs(float(exact) - float(value)) > 2.0**62:
        raise NumberOverflowError(
            f"Expected literals whose value fits 64 bits, found about {float(exact):.3g}",
            call.span,
            hint="write one of them with a decimal point",
        )


def _evaluated(call: Call, args: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(call.operator.evaluate(*args))
    except TypeError:
        raise _not_defined(call, args[0].dtype) from None


def _not_defined(call: Call | Reduce, dtype: DType) -> OperandTypeError:
    to = "np.int64" if call.operator.kinds == "biu" else "np.float64"
    if call.operator.loops:
        to = f"A.astype(np.{call.operator.loops[-1]}): it is defined for "
        to += ", ".join(call.operator.loops)
    elif dtype.kind == "c":
        to = "np.abs(A) or A.real"
    else:
        to = f"A.astype({'np.int8' if dtype.kind == 'b' else to})"
        to += "; a power is written x[i]**2" if call.operator.symbol == "^" else ""
    return OperandTypeError(
        f"Expected operands that {spelled(call)} is defined for, found dtype {dtype}",
        call.span,
        hint=f"convert an operand first, for instance with {to}",
    )


def _operand_dtype(call: Call, args: list[_Typed]) -> DType:
    filled = call.operator.at_absent is not None and args[0].dtype.kind == "V"
    leads = call.operator.leads or filled  # the fill value of bfloat16 is one itself
    common = _converted(call.operator, _common(args[:1] if leads else args))
    check_defined(call, common)
    if call.operator.compares and all(arg.dtype.kind in "biu" for arg in args):
        return _compared(common, args)
    if common.kind in "iu":
        for arg in args:
            _check_fits(arg, common, call.span)
    return common


def _common(args: list[_Typed]) -> DType:
    """Return the promoted dtype of all arguments; literals adapt to a strong dtype of their
    kind."""
    strong = [arg.dtype for arg in args if not arg.weak]
    weak = [arg.dtype for arg in args if arg.weak]
    if not strong:
        return np.result_type(*weak)
    common = common_dtype(strong)
    rank = max((_RANK[dtype.kind] for dtype in weak), default=0)
    if common.kind == "V" and rank == _RANK["f"]:
        return np.dtype(np.float32)  # so ml_dtypes has it
    if rank <= _RANK[number_kind(common)]:
        return common
    if rank == _RANK["c"] and number_kind(common) == "f":
        return np.result_type(common, np.complex64)
    return _DEFAULT[rank]


def _compared(common: DType, args: Iterable[_Typed]) -> DType:
    """Return the integer type that compares numbers exactly.

    It also holds the literals: int16 for uint8 and -1; Python's integers where no other type does.
    """
    for arg in args:
        if arg.weak and common.kind in "iu" and not holds(common, int(arg.value)):
            common = np.promote_types(common, np.min_scalar_type(int(arg.value)))
    return common if common.kind in "biu" else np.dtype(object)


def _converted(operator: Operator, common: DType) -> DType:
    if operator.loops:
        return loop_dtype(operator.loops, computed_dtype(common))
    if common.kind not in "biu":
        return common
    if operator.true_division:
        return np.dtype(np.float64)
    if operator.floating:  # NumPy's is float16 for one byte
        return np.dtype(np.float32 if common.itemsize <= 2 else np.float64)
    if common.kind == "b" and isinstance(operator.evaluate, np.ufunc):  # shifts, // and % of truths
        return _of_truths(operator.evaluate)
    return common


def loop_dtype(loops: Iterable[str], common: DType) -> DType:
    """Return the first loop dtype of a function that `common` casts to safely, else `common`."""
    dtypes = (np.dtype(name) for name in loops if np.can_cast(common, name, "safe"))
    return next(dtypes, common)


def holds(dtype: DType, value: complex | None) -> bool:
    """Tell whether a type represents a number exactly."""
    if value is None:
        return False
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        converted = np.asarray(value).astype(dtype).item()
    return bool(converted == value or (converted != converted and value != value))


def _of_truths(function: np.ufunc) -> DType:
    """Return the dtype in which NumPy computes a function of booleans; bool where it has none."""
    truths: Any = (np.dtype(bool),) * function.nin + (None,) * function.nout
    try:
        return np.dtype(function.resolve_dtypes(truths)[0])
    except TypeError:
        return np.dtype(bool)


def _check_fits(arg: _Typed, dtype: DType, span: Span | None) -> None:
    if not arg.weak or arg.dtype.kind not in "iu":
        return
    limits = np.iinfo(dtype)
    if not limits.min <= int(arg.value) <= limits.max:
        raise NumberOverflowError(
            f"Expected a literal from {limits.min} to {limits.max} beside an operand of dtype "
            f"{dtype}, found {int(arg.value)}",
            span,
            hint="convert the operand to a wider dtype, or write the literal with a decimal point",
        )
