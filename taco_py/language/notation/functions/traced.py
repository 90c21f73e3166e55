"""Expressions from Python functions: the operations on their arguments are recorded.

    trace(lambda x: where(abs(x) < 1, x * x / 2, abs(x) - 0.5), 1)
    = where(abs(x) < 1, x * x / 2, abs(x) - 0.5)                      over the operand `x`

Arguments are `Traced`: Python's operators, NumPy's functions and those of `taco_py.functions` build
expressions from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from taco_py.language.diagnostics.errors import InternalError, OperandTypeError
from taco_py.language.notation.checks import check_depth
from taco_py.language.notation.functions.function_table import (
    ALIASES,
    COMPOSED,
    FACTORS,
    FUNCTIONS,
    INVERT,
    LADDER,
    POWER,
    arity_of,
)
from taco_py.language.notation.functions.function_table import make_call as call_of
from taco_py.language.notation.nodes import Access, Call, Expr, Literal
from taco_py.language.notation.operators import (
    ADD,
    DIV,
    MOST_FACTORS,
    MUL,
    NEG,
    SUB,
    Operator,
    power,
)

_USES = "use Python's operators, & | ~ for truths, and where(c, a, b) of taco_py.functions"
_SYMBOLS: dict[str, Operator] = {
    op.symbol: op for op in (ADD, SUB, MUL, DIV, *FACTORS, *(op for row in LADDER for op in row))
}
_UFUNCS: dict[Any, str] = {
    op.evaluate: name for name, op in FUNCTIONS.items() if isinstance(op.evaluate, np.ufunc)
}
_INFIX_UFUNCS: dict[Any, Operator] = {
    np.power: POWER,
    **{op.evaluate: op for op in (*_SYMBOLS.values(), NEG, INVERT)},
}


class _AttributeOfTracedError(OperandTypeError, AttributeError):
    """An expression has no such attribute, so that `hasattr` is False."""


class Traced:
    """An expression that a Python function computes from its arguments."""

    __slots__ = ("expr",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __getattr__(self, name: str) -> NoReturn:
        raise _AttributeOfTracedError(
            f"Expected operators and functions of a number, found its attribute .{name}",
            hint="use functions of taco_py.functions, such as clip or real: scalar functions, of "
            "numbers that have no sums, shapes or dtypes",
        )

    def __bool__(self) -> NoReturn:
        raise OperandTypeError(
            "Expected an expression of the arguments, found a branch on one (if, and, or, not)",
            hint=_USES,
        )

    def __pow__(self, exponent: Any) -> Traced:
        if type(exponent) is int and 0 <= exponent <= MOST_FACTORS:
            return Traced(Call(power(exponent), (self.expr,)))
        return Traced(Call(POWER, (self.expr, expression_of(exponent))))

    def __rpow__(self, base: Any) -> Traced:
        return Traced(Call(POWER, (expression_of(base), self.expr)))

    def __abs__(self) -> Traced:
        return apply("abs", self)

    def __neg__(self) -> Traced:
        return Traced(Call(NEG, (self.expr,)))

    def __pos__(self) -> Traced:
        return self

    def __invert__(self) -> Traced:
        return Traced(Call(INVERT, (self.expr,)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Traced:
        """Apply NumPy's function of the same name: np.exp(x) is exp(x)."""
        if method == "__call__" and not options:
            if ufunc in _INFIX_UFUNCS:
                return Traced(Call(_INFIX_UFUNCS[ufunc], tuple(map(expression_of, inputs))))
            if ufunc in _UFUNCS:
                return apply(_UFUNCS[ufunc], *inputs)
        return self._refuse(ufunc.__name__)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], options: Any
    ) -> Traced:
        """Apply NumPy's where, clip and other functions that texts have."""
        name = ALIASES.get(function.__name__, function.__name__)
        if not options and (name in FUNCTIONS or name in COMPOSED):
            return apply(name, *args)
        return self._refuse(function.__name__)

    def _refuse(self, name: str) -> NoReturn:
        raise OperandTypeError(
            f"Expected functions that texts have, found np.{name}",
            hint="docs/functions.md lists them",
        )


def _left(operator: Operator) -> Callable[[Traced, Any], Traced]:
    return lambda self, other: Traced(Call(operator, (self.expr, expression_of(other))))


def _right(operator: Operator) -> Callable[[Traced, Any], Traced]:
    return lambda self, other: Traced(Call(operator, (expression_of(other), self.expr)))


for _symbol, _name in {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod",
    "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
}.items():  # fmt: skip
    setattr(Traced, f"__{_name}__", _left(_SYMBOLS[_symbol]))
    setattr(Traced, f"__r{_name}__", _right(_SYMBOLS[_symbol]))
for _symbol, _name in {
    "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
}.items():  # fmt: skip
    setattr(Traced, f"__{_name}__", _left(_SYMBOLS[_symbol]))


def apply(name: str, *args: Any) -> Traced:
    """Apply a function of texts to arguments, of which at least one is traced."""
    return Traced(call_of(name, tuple(map(expression_of, args))))


def expression_of(value: Any) -> Expr:
    """Return the expression of a traced argument or of a number. Raises OperandTypeError."""
    if isinstance(value, Traced):
        return value.expr
    if isinstance(value, bool | int | float | complex | np.generic):
        return Literal(value.item() if isinstance(value, np.generic) else value)
    raise OperandTypeError(
        f"Expected an expression of the arguments or a number, found {type(value).__name__}",
        hint=_USES,
    )


def trace(function: Callable[..., Any], names: tuple[str, ...]) -> Expr:
    """Record the expression that a function computes from operands without indices.

    Raises OperandTypeError where the function does something else with its arguments, NotationError
    where the expression is nested too deep, and any exception of the function.
    """
    expr = expression_of(function(*(Traced(Access(name, ())) for name in names)))
    check_depth(expr)
    return expr


def value_of(expr: Expr, values: Mapping[str, Any]) -> Any:
    """Evaluate an expression of operands without indices with NumPy."""
    match expr:
        case Access():
            return values[expr.tensor]
        case Literal():
            return expr.value
        case Call():
            return expr.operator.evaluate(*(value_of(arg, values) for arg in expr.args))
        case _:
            raise InternalError(f"Expected an expression of numbers, found {expr}")


class ScalarFunction:
    """A named function of texts that takes numbers, arrays or traced arguments."""

    __slots__ = ("__name__",)

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any) -> Any:
        name = self.__name__
        if len(args) != arity_of(name):
            raise OperandTypeError(
                f"Expected {arity_of(name)} arguments of {name}, found {len(args)}"
            )
        if any(isinstance(arg, Traced) for arg in args):
            return apply(name, *args)
        names = tuple(f"a{place}" for place in range(len(args)))
        body = call_of(name, tuple(Access(argument, ()) for argument in names))
        return value_of(body, dict(zip(names, args, strict=True)))

    def __repr__(self) -> str:
        return f"<function {self.__name__} of taco_py.functions>"
