"""`function`: a Python function that texts can call."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any

from taco_py.call.prepare import forget_texts
from taco_py.diagnostics.errors import NotationError, OperandError, OperandTypeError
from taco_py.notation.functions.defined import DEFINED
from taco_py.notation.functions.function_table import ALIASES, COMPOSED, FUNCTIONS, REDUCTIONS
from taco_py.notation.functions.properties import check_properties
from taco_py.notation.functions.traced import ScalarFunction, trace, value_of
from taco_py.notation.nodes import Expr
from taco_py.notation.operators import Operator
from taco_py.notation.printer import to_text
from taco_py.notation.rewrites.reduce import written_out
from taco_py.notation.tree import map_accesses

KEYWORDS = ("and", "or", "not", "inf", "nan", "True", "False")


def function(
    name: str,
    body: Callable[..., Any],
    *,
    zero_preserving: bool = False,
    commutative: bool = False,
    associative: bool = False,
    idempotent: bool = False,
    identity: complex | None = None,
    annihilator: complex | None = None,
    replace: bool = False,
) -> Callable[..., Any]:
    """Define a function of numbers that texts can call by its name.

    >>> from taco_py.functions import where
    >>> body = lambda x: where(abs(x) < 1, x * x / 2, abs(x) - 0.5)
    >>> huber = tp.function("huber", body, zero_preserving=True)
    >>> huber(np.array([0.5, -3.0]))
    array([0.125, 2.5  ])
    >>> tp.evaluate("s = huber(r[i])", r=np.array([0.5, -3.0]))
    np.float64(2.625)

    The body is called once, with arguments that write down what it does with them: Python's
    operators, NumPy's functions, and those of `taco_py.functions`. No `if`: where(c, a, b). The
    compiler sees what the function is made of, so its types, what it is where operands store
    nothing, and vector code follow; nothing of Python is called when a text is evaluated.

    name      of the function in texts, other than those that texts have
    body      from one or more numbers to one
    zero_preserving, commutative, associative, idempotent, identity, annihilator
              what is expected of it: checked on random numbers of each kind
    replace   True puts it in the place of another function of that name

    Returns the function, of NumPy arrays. Raises OperandError for a name that is taken, and for a
    property that does not hold, with the numbers; OperandTypeError for what texts cannot do, and
    NotationError for a body that is nested too deep.
    """
    _check_name(name)
    names = _arguments(name, body)
    traced = _traced(name, body, names)
    digest = hashlib.sha256(f"{names} {to_text(traced)}".encode()).hexdigest()[:16]
    operator = Operator(
        name, name, len(names), f"{name}_{digest}", 4,
        annihilators=(None,) * len(names), linear=(False,) * len(names),
        body=_substituting(written_out(traced), names), evaluate=_numeric(traced, names),
    )  # fmt: skip
    declared = {
        "zero_preserving": zero_preserving, "commutative": commutative,
        "associative": associative, "idempotent": idempotent, "identity": identity,
        "annihilator": annihilator,
    }  # fmt: skip
    check_properties(name, operator.evaluate, len(names), declared)
    if DEFINED.bodies.get(name, digest) != digest and not replace:
        raise OperandError(
            f"Expected a name without a function, found {name}, which has another body",
            hint="give it another name, or pass replace=True",
        )
    if DEFINED.bodies.get(name) != digest:
        DEFINED.define(name, operator, digest)
        forget_texts()
    return ScalarFunction(name)


def _check_name(name: str) -> None:
    """Raise OperandError where texts cannot call a function by a name."""
    if not isinstance(name, str):
        raise OperandTypeError(f"Expected a name as a string, found {type(name).__name__}")
    if not (name.isidentifier() and name.isascii()):
        raise OperandError(f"Expected a name of letters, digits and underscores, found {name!r}")
    if name in (*FUNCTIONS, *COMPOSED, *ALIASES, *REDUCTIONS, *KEYWORDS):
        raise OperandError(
            f"Expected a name that texts do not have, found {name}", hint="give it another name"
        )


def _arguments(name: str, body: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's arguments. Raises OperandTypeError where it has no such list."""
    if not callable(body):
        raise OperandTypeError(
            f"Expected a Python function as the body of {name}, found {type(body).__name__}",
            hint=f'write tp.function("{name}", lambda x: …)',
        )
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = tuple(inspect.signature(body).parameters.values())
    except ValueError:
        parameters = ()
    if not parameters or any(each.kind not in kinds for each in parameters):
        raise OperandTypeError(
            f"Expected a Python function of one argument or several for {name}",
            hint="write its arguments out, as in lambda x, y: …",
        )
    return tuple(each.name for each in parameters if each.default is inspect.Parameter.empty)


def _traced(name: str, body: Callable[..., Any], names: tuple[str, ...]) -> Expr:
    try:
        return trace(body, names)
    except NameError as error:
        raise NotationError(
            f"Expected names that Python knows in the body of {name}: {error}",
            hint="functions of texts are in taco_py.functions: "
            f"from taco_py.functions import {error.name or 'where'}",
        ) from error
    except OperandTypeError:
        raise
    except TypeError as error:
        raise OperandTypeError(
            f"Expected operators that expressions have in the body of {name}: {error}",
            hint="use operators, NumPy's functions, and those of taco_py.functions",
        ) from error


def _substituting(traced: Expr, names: tuple[str, ...]) -> Callable[..., Expr]:
    """From arguments to the body of them."""

    def body(*args: Expr) -> Expr:
        of = dict(zip(names, args, strict=True))
        return map_accesses(traced, lambda access: of[access.tensor])

    return body


def _numeric(traced: Expr, names: tuple[str, ...]) -> Callable[..., Any]:
    """The function of NumPy arrays."""
    return lambda *args: value_of(traced, dict(zip(names, args, strict=True)))
