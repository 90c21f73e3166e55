"""Functions as data: NumPy's functions, under NumPy's names, and their spelling in texts.

A function is an `Operator` of the table, or composed of others (`relu(x) = max(x, 0)`). Neither the
parser nor the compiler names one: a new function is an entry here, and its C text in
`codegen.libraries.scalar_functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.diagnostics.source import Span
from taco_py.language.notation.functions.averages import Places, mean, variance
from taco_py.language.notation.functions.defined import DEFINED
from taco_py.language.notation.nodes import Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import (
    ADD,
    COMPILER,
    DIV,
    KEEP,
    MUL,
    QUOTIENT,
    VALUE,
    Law,
    Operator,
    power,
)

REAL = "biuf"
INTEGERS = "biu"
ABSENT = (0, 0)
ERF = "d * exp(-a * a) * 1.1283791670955126"
LOGADDEXP = "d * sigmoid(where(isinf(a) and a == b, 0, a - b))"
CONSTANT = ("0", "0")
"""The cotangents of a function of two arguments that is constant almost everywhere."""


def _real(
    name: str, evaluate: Callable[..., Any], cotangent: str, kinds: str = "biufc"
) -> Operator:
    """Return an entry of one argument that is computed in floating point."""
    return Operator(
        name, name, 1, name, 4, kinds=kinds, floating=True, cotangents=(cotangent,),
        evaluate=evaluate,
    )  # fmt: skip


def _nearest(name: str, x: Any) -> Any:
    """Round numbers to a 16-bit type, and return them in their own."""
    from taco_py.language.notation.half_types import half_named

    array = np.asarray(x)
    with np.errstate(over="ignore"):
        return array.astype(half_named(name)).astype(array.dtype)


def _same(
    name: str, evaluate: Callable[..., Any], kinds: str = "biufc", cotangent: str = "0"
) -> Operator:
    """Return an entry that preserves its argument's type; most are constant almost everywhere."""
    return Operator(
        name, name, 1, name, 4, kinds=kinds, cotangents=(cotangent,), evaluate=evaluate
    )  # fmt: skip


def _binary(name: str, evaluate: Callable[..., Any], **algebra: Any) -> Operator:
    """Return an entry of two arguments."""
    return Operator(name, name, 2, name, 4, evaluate=evaluate, **algebra)


def _infix(
    symbol: str, evaluate: np.ufunc, precedence: int, c_operator: str = "", **algebra: Any
) -> Operator:
    """Return an entry of an infix operator."""
    name = evaluate.__name__
    return Operator(name, symbol, 2, c_operator or name, precedence, evaluate=evaluate, **algebra)


def _comparison(symbol: str, evaluate: np.ufunc, **algebra: Any) -> Operator:
    return _infix(symbol, evaluate, -4, compares=True, cotangents=CONSTANT, **algebra)


def _special(name: str) -> Callable[[Any], Any]:
    """Return a function of SciPy, which is imported at the first call."""

    def evaluate(x: Any) -> Any:
        from scipy import special

        return getattr(special, name)(x)

    return evaluate


def _rounded(x: Any) -> Any:
    """Round as NumPy does, but leave booleans, which NumPy rounds to float16."""
    return np.asarray(x) if np.asarray(x).dtype.kind == "b" else np.round(x)


def _power(x: Any, y: Any) -> Any:
    """Return NumPy's power; of integers with negative exponents the truncated quotient 1 / x**-y, 0
    for x = 0."""
    x, y = np.asarray(x), np.asarray(y)
    if np.result_type(x, y).kind != "i":
        return np.power(x, y)
    negative = y < 0
    result = np.power(x, np.where(negative, y % 2, y).astype(y.dtype))
    return np.where(negative & (np.abs(x) != 1), result.dtype.type(0), result)


def _extremum(name: str, evaluate: np.ufunc, limit: int, other: str) -> Operator:
    ahead = "<" if limit > 0 else ">"
    first = f"where(a {ahead} b, d, where(a == b, 0.5 * d, 0))"
    second = f"where(b {ahead} a, d, where(a == b, 0.5 * d, 0))"
    return _binary(
        name, evaluate, commutative=True, associative=True, idempotent=True, limit=limit,
        kinds=REAL, needs_elements=True, cotangents=(first, second),
        over=(Law(name, REAL), Law(other, REAL, -limit * float("inf"), REAL)),
    )  # fmt: skip


MIN = _extremum("min", np.minimum, 1, "max")
MAX = _extremum("max", np.maximum, -1, "min")
AND = Operator(
    "logical_and", "logical_and", 2, "&&", 4, commutative=True, associative=True, idempotent=True,
    identity=True, right_identity=True, annihilators=ABSENT, cotangents=CONSTANT,
    evaluate=np.logical_and,
)  # fmt: skip
OR = Operator(
    "logical_or", "logical_or", 2, "||", 4, commutative=True, associative=True, idempotent=True,
    identity=False, right_identity=False, cotangents=CONSTANT, evaluate=np.logical_or,
    over=(Law("logical_and", "b", True, "b"),),
)  # fmt: skip
XOR = Operator(
    "logical_xor", "logical_xor", 2, "!=", 4, commutative=True, associative=True, identity=False,
    right_identity=False, cotangents=CONSTANT, evaluate=np.logical_xor,
)  # fmt: skip
NOT = _same("logical_not", np.logical_not)
EQUAL = _comparison("==", np.equal, commutative=True)
NOT_EQUAL = _comparison("!=", np.not_equal, commutative=True)
WHERE = Operator(
    "where", "where", 3, "where", 4, annihilators=(None, None, None),
    linear=(False, False, False), chooses=True,
    cotangents=("0", "where(a, d, 0)", "where(a, 0, d)"), evaluate=np.where,
)  # fmt: skip
POWER = Operator(
    "pow", "pow", 2, "power", 4, kinds="iufc", evaluate=_power,
    cotangents=("d * b * pow(a, b - 1)", "where(a > 0, d * f * log(where(a > 0, a, 1)), 0)"),
)  # fmt: skip

LADDER: tuple[tuple[Operator, ...], ...] = (
    (
        _comparison("<", np.less, kinds=REAL),
        _comparison("<=", np.less_equal, kinds=REAL),
        _comparison(">", np.greater, kinds=REAL),
        _comparison(">=", np.greater_equal, kinds=REAL),
        EQUAL,
        NOT_EQUAL,
    ),
    (
        _infix(
            "|", np.bitwise_or, -3, "|", commutative=True, associative=True, idempotent=True,
            identity=0, right_identity=0, kinds=INTEGERS, over=(Law("bitwise_or", INTEGERS),),
        ),
    ),
    (
        _infix(
            "^", np.bitwise_xor, -2, "^", commutative=True, associative=True, identity=0,
            right_identity=0, kinds=INTEGERS,
        ),
    ),
    (
        _infix(
            "&", np.bitwise_and, -1, "&", commutative=True, associative=True, idempotent=True,
            identity=-1, right_identity=-1, annihilators=ABSENT, kinds=INTEGERS,
            over=(
                Law("bitwise_or", INTEGERS, 0, INTEGERS),
                Law("bitwise_xor", INTEGERS, 0, INTEGERS),
            ),
        ),
    ),
    (
        _infix("<<", np.left_shift, 0, annihilators=(0, None), kinds=INTEGERS),
        _infix(">>", np.right_shift, 0, annihilators=(0, None), kinds=INTEGERS),
    ),
)  # fmt: skip
"""Operators of lower precedence than sums, the lowest first, as in Python."""
LESS = LADDER[0][0]

FACTORS = (
    _infix(
        "//",
        np.floor_divide,
        2,
        annihilators=(0, None),
        divides=True,
        kinds=REAL,
        cotangents=CONSTANT,
    ),
    _infix(
        "%",
        np.remainder,
        2,
        annihilators=(0, None),
        divides=True,
        kinds=REAL,
        cotangents=("d", "-d * (a // b)"),
    ),
)
"""Operators of the precedence of products, besides * and /."""

INVERT = Operator(
    "invert", "~", 1, "invert", 3, kinds=INTEGERS, of_truths=NOT, of_width="u", evaluate=np.invert
)

FUNCTIONS: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        _same("abs", np.abs, cotangent="d * conj(sign(a))"),
        _same("sign", np.sign, "iufc"),
        _same("floor", np.floor, REAL),
        _same("ceil", np.ceil, REAL),
        replace(_same("round", _rounded), c_operator="rint"),
        _same("trunc", np.trunc, REAL),
        replace(
            _same("reciprocal", np.reciprocal, cotangent="-d * f * f"),
            of_fractions=lambda x: Call(DIV, (Literal(1), x)), of_width="iu",
        ),
        _same("isnan", np.isnan),
        _same("isinf", np.isinf),
        _same("isfinite", np.isfinite),
        _same("conj", np.conjugate, "iufc", "conj(d)"),
        _same("real", np.real, cotangent="real(d)"),
        _same("imag", np.imag, cotangent="-1j * real(d)"),
        _real("angle", np.angle, "-1j * real(d) * conj(a) / real(a * conj(a))"),
        replace(_real("sqrt", np.sqrt, "d / (2 * f)"), root=2),
        replace(_real("cbrt", np.cbrt, "d / (3 * f * f)", REAL), root=3),
        _real("exp", np.exp, "d * f"),
        _real("expm1", np.expm1, "d * exp(a)"),
        _real("log", np.log, "d / a"),
        _real("log1p", np.log1p, "d / (1 + a)"),
        _real("log2", np.log2, "d / (a * 0.6931471805599453)"),
        _real("log10", np.log10, "d / (a * 2.302585092994046)"),
        _real("sin", np.sin, "d * cos(a)"),
        _real("cos", np.cos, "-d * sin(a)"),
        _real("tan", np.tan, "d * (1 + f * f)"),
        _real("asin", np.arcsin, "d / sqrt(1 - a * a)"),
        _real("acos", np.arccos, "-d / sqrt(1 - a * a)"),
        _real("atan", np.arctan, "d / (1 + a * a)"),
        _real("sinh", np.sinh, "d * cosh(a)"),
        _real("cosh", np.cosh, "d * sinh(a)"),
        _real("tanh", np.tanh, "d * (1 - f * f)"),
        _real("asinh", np.arcsinh, "d / sqrt(1 + a * a)"),
        _real("acosh", np.arccosh, "d / (sqrt(a - 1) * sqrt(a + 1))"),
        _real("atanh", np.arctanh, "d / (1 - a * a)"),
        _real("exp2", np.exp2, "d * f * 0.6931471805599453"),
        replace(_real("erf", _special("erf"), ERF, REAL), true_division=True),
        replace(_real("sigmoid", _special("expit"), "d * f * (1 - f)", REAL), true_division=True),
        _binary(
            "hypot", np.hypot, kinds=REAL, floating=True, commutative=True,
            cotangents=("d * a / where(f == 0, 1, f)", "d * b / where(f == 0, 1, f)"),
        ),
        _binary(
            "logaddexp", np.logaddexp, kinds=REAL, floating=True, commutative=True,
            cotangents=(LOGADDEXP, LOGADDEXP.replace("a - b", "b - a")),
        ),
        _binary(
            "atan2", np.arctan2, kinds=REAL, floating=True,
            cotangents=("d * b / (a * a + b * b)", "-d * a / (a * a + b * b)"),
        ),
        _binary(
            "copysign", np.copysign, kinds=REAL, floating=True,
            cotangents=("d * copysign(1, a) * copysign(1, b)", "0"),
        ),
        _binary(
            "fmin", np.fmin, kinds=REAL, commutative=True, associative=True, idempotent=True,
            cotangents=(
                "where(a < b or isnan(b), d, where(a == b, 0.5 * d, 0))",
                "where(b < a or isnan(a), d, where(a == b, 0.5 * d, 0))",
            ),
        ),
        _binary(
            "fmax", np.fmax, kinds=REAL, commutative=True, associative=True, idempotent=True,
            cotangents=(
                "where(a > b or isnan(b), d, where(a == b, 0.5 * d, 0))",
                "where(b > a or isnan(a), d, where(a == b, 0.5 * d, 0))",
            ),
        ),
        MIN, MAX, AND, OR, XOR, NOT, WHERE, POWER,
    )
}  # fmt: skip
"""Functions that texts call, by their names."""

NEAREST = {
    name: _same(f"nearest_{name}", partial(_nearest, name), "f", "d")
    for name in ("float16", "bfloat16")
}
"""The functions that round a float32 to the nearest number of a 16-bit type. Internal."""

ALIASES = {
    "absolute": "abs", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2",
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "minimum": "min", "maximum": "max",
    "conjugate": "conj", "rint": "round", "power": "pow",
}  # fmt: skip
"""Other names of NumPy for the same functions."""


@dataclass(frozen=True, slots=True)
class Composed:
    """A function composed of others: its number of arguments, and its expression."""

    arity: int
    make: Callable[..., Expr]


def nonzero(expr: Expr) -> Expr:
    """Compare an expression with 0, unless it is a truth already."""
    if isinstance(expr, Call) and expr.operator in TRUTHS:
        return expr
    return Call(NOT_EQUAL, (expr, Literal(0)), expr.span)


TRUTHS = (
    *LADDER[0],
    AND,
    OR,
    XOR,
    NOT,
    *(FUNCTIONS[name] for name in ("isnan", "isinf", "isfinite")),
)

_COPYSIGN = FUNCTIONS["copysign"]


COMPOSED: dict[str, Composed] = {
    "relu": Composed(1, lambda x: Call(MAX, (x, Literal(0)))),
    "square": Composed(1, lambda x: Call(power(2), (x,))),
    "clip": Composed(3, lambda x, least, most: Call(MIN, (Call(MAX, (x, least)), most))),
    "where": Composed(3, lambda c, a, b: Call(WHERE, (nonzero(c), a, b))),
    "logical_and": Composed(2, lambda a, b: Call(AND, (nonzero(a), nonzero(b)))),
    "logical_or": Composed(2, lambda a, b: Call(OR, (nonzero(a), nonzero(b)))),
    "logical_xor": Composed(2, lambda a, b: Call(XOR, (nonzero(a), nonzero(b)))),
    "logical_not": Composed(1, lambda a: Call(NOT, (nonzero(a),))),
    "signbit": Composed(1, lambda x: Call(LESS, (Call(_COPYSIGN, (Literal(1), x)), Literal(0)))),
    "stored": Composed(1, lambda a: Call(COMPILER["stored"], (a,))),
}
"""Composed functions that texts call, by their names."""


def called() -> tuple[str, ...]:
    """Return the names of all functions, also of users' functions."""
    return (*FUNCTIONS, *COMPOSED, *DEFINED.operators)


DERIVATIVE_OPERATORS: Mapping[str, Operator] = MappingProxyType(
    {"value": VALUE, "quotient": QUOTIENT, "kept": KEEP}
)
"""Operators that texts of derivatives call besides functions, by their names."""


def is_called(name: str) -> bool:
    """Tell whether a name is the name of a function."""
    return name in FUNCTIONS or name in COMPOSED or name in DEFINED.operators


def _reduction(
    operator: Operator, prepare: Callable[[Expr], Expr] = lambda body: body
) -> Callable[[tuple[str, ...], Expr, Span], Expr]:
    """Return a function that reduces a prepared body over indices, the first index outermost."""

    def make(indices: tuple[str, ...], body: Expr, span: Span) -> Expr:
        expr = prepare(body)
        for index in reversed(indices):
            expr = Reduce(operator, index, expr, span)
        return expr

    return make


_PLACES = Places(MIN, EQUAL, NOT_EQUAL, OR)

REDUCTIONS: dict[str, Callable[[tuple[str, ...], Expr, Span], Expr]] = {
    "sum": _reduction(ADD),
    "prod": _reduction(MUL),
    "min": _reduction(MIN),
    "max": _reduction(MAX),
    "any": _reduction(OR, nonzero),
    "all": _reduction(AND, nonzero),
    "count": _reduction(ADD, nonzero),
    "mean": mean,
    "var": partial(variance, FUNCTIONS["abs"]),
    "argmin": partial(_PLACES.of, MIN),
    "argmax": partial(_PLACES.of, MAX),
}
"""Reductions by name, each with a function that builds its expression of indices and a body."""


def is_reduction(name: str) -> bool:
    """Tell whether a name is a reduction, or a user's function that reduces."""
    return name in REDUCTIONS or (name in DEFINED.operators and DEFINED.operators[name].reduces)


def reduces(name: str) -> bool:
    """Tell whether a name is a reduction, or a function of two arguments that may reduce."""
    return name in REDUCTIONS or (is_called(name) and arity_of(name) == 2)


def check_reduces(name: str, span: Span | None) -> None:
    """Raise NotationError where a function cannot reduce any number of values."""
    if is_reduction(name):
        return
    operator = DEFINED.operators.get(name)
    if operator is None:
        what, remedy = "which is none", f"the reductions are {', '.join(REDUCTIONS)}"
    else:
        properties = {
            "associative=True": operator.associative, "commutative=True": operator.commutative,
            "identity=": operator.identity is not None,
        }  # fmt: skip
        missing = ", ".join(keyword for keyword, declared in properties.items() if not declared)
        what = "which is not declared so: the result would depend on the order of the values"
        remedy = f'say {missing} in tp.function("{name}", …) if it is, where that is checked'
    raise NotationError(
        f"Expected an associative and commutative function with an identity to reduce by, found "
        f"{name}, {what}",
        span,
        f"{remedy}; {name} of the number j of an index is added up by sum(j, {name}(j, …))",
    )


def check_accumulates(name: str, span: Span | None) -> None:
    """Raise NotationError where an assignment cannot accumulate by a function."""
    if name not in _ACCUMULATE:
        check_reduces(name, span)
    if name in REDUCTIONS and name not in _ACCUMULATE:
        raise NotationError(
            f"Expected a function of two numbers before the equals sign, found {name}",
            span,
            f"write y[i] = {name}(j, …), or accumulate by +=, *=, min= or max=",
        )


_ACCUMULATE = ("min", "max")
"""Reductions by whose names assignments accumulate."""


def make_reduction(name: str, indices: tuple[str, ...], body: Expr, span: Span) -> Expr:
    """Build the expression of a reduction by its name, also of a user's function."""
    if name in REDUCTIONS:
        return REDUCTIONS[name](indices, body, span)
    return _reduction(DEFINED.operators[name])(indices, body, span)


def arity_of(name: str) -> int:
    """Return the number of arguments of a function."""
    if name in COMPOSED:
        return COMPOSED[name].arity
    return _operator(name).arity


def make_call(name: str, args: tuple[Expr, ...]) -> Expr:
    """Build the expression of a function by its name."""
    if name in COMPOSED:
        result: Expr = COMPOSED[name].make(*args)
        return result
    return Call(_operator(name), args)


def _operator(name: str) -> Operator:
    return FUNCTIONS.get(name) or DEFINED.operators.get(name) or DERIVATIVE_OPERATORS[name]
