"""`function`: a Python function that texts can call."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace as replaced
from functools import partial
from typing import Any

import numpy as np

from codegen.libraries.scalar_functions import REGISTERED
from codegen.libraries.scalar_functions import ScalarFunction as KernelFunction
from codegen.records import dataclass
from codegen.types import SCALARS
from taco_py.calls.statements.read_text import forget_texts
from taco_py.language.diagnostics.errors import NotationError, OperandError, OperandTypeError
from taco_py.language.notation.dtypes import expression_dtype, holds
from taco_py.language.notation.functions.defined import DEFINED
from taco_py.language.notation.functions.function_table import (
    ALIASES,
    COMPOSED,
    FUNCTIONS,
    REDUCTIONS,
)
from taco_py.language.notation.functions.properties import check_properties
from taco_py.language.notation.functions.traced import ScalarFunction, trace, value_of
from taco_py.language.notation.nodes import Expr
from taco_py.language.notation.operators import Operator
from taco_py.language.notation.rewrites.reduce import written_out
from taco_py.language.notation.tree import map_accesses

KEYWORDS = ("and", "or", "not", "inf", "nan", "True", "False")


def function(
    name: str,
    body: Callable[..., Any] | None = None,
    *,
    numpy: Callable[..., Any] | None = None,
    c: str | None = None,
    dtypes: Any = None,
    zero_preserving: bool = False,
    commutative: bool = False,
    associative: bool = False,
    idempotent: bool = False,
    identity: complex | None = None,
    annihilator: complex | tuple[complex | None, ...] | None = None,
    replace: bool = False,
) -> ScalarFunction:
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

    >>> soft = tp.function("soft", numpy=lambda x: x / (1 + abs(x)), c="x / (1 + fabs(x))")
    >>> tp.evaluate("y[i] = soft(r[i])", r=np.array([0.5, -3.0]))
    array([ 0.33333333, -0.75      ])

    C text stands in the kernels that call it, beside a NumPy function of arrays which says what it
    computes: both are compared on numbers of each type, infinities and NaN among them.

    A function of two arguments that is commutative and associative and has an identity reduces
    too: f(j, A[i,j]), y[i] f= x[i], tp.Semiring(f, "times").

    name      of the function in texts, other than those that texts have
    body      from one or more numbers to one
    numpy, c  in its place: a NumPy function, and C text of the same, an expression of the arguments
              as NumPy's function calls them, or statements that return one; `T` is their type
    dtypes    of the arguments of C text; float32 and float64 where not given. Others are converted
              to the first that holds them
    zero_preserving, commutative, associative, idempotent, identity, annihilator
              what is expected of it: checked on random numbers of each kind. The annihilator may be
              one for each argument: (0, None)
    replace   True puts it in the place of another function of that name

    Returns the function, of NumPy arrays. Raises OperandError for a name that is taken, for a
    property that does not hold and for C text that computes something else, with the numbers;
    OperandTypeError for what texts cannot do, NotationError for a body that is nested too deep and
    for C text that does not compile, CompilerError where there is no compiler for it.
    """
    _check_name(name)
    declared = {
        "zero_preserving": zero_preserving, "commutative": commutative,
        "associative": associative, "idempotent": idempotent, "identity": identity,
        "annihilator": annihilator,
    }  # fmt: skip
    by_text = c is not None or numpy is not None
    if by_text:
        definition = _by_text(name, (body, numpy, c), dtypes, declared)
    else:
        definition = _by_tracing(name, body, dtypes, declared)
    if DEFINED.bodies.get(name, definition.digest) != definition.digest and not replace:
        raise OperandError(
            f"Expected a name without a function, found {name}, which has another body",
            hint="give it another name, or pass replace=True",
        )
    REGISTERED.add(definition.operator.c_operator, definition.function)
    if DEFINED.bodies.get(name) != definition.digest:
        DEFINED.define(name, definition.operator, definition.digest)
        forget_texts()
    return ScalarFunction(name)


@dataclass(frozen=True, slots=True, eq=False)
class _Definition:
    """An operator, what tells its body, and what makes the function that kernels call for it."""

    operator: Operator
    digest: str
    function: Callable[[], KernelFunction]


def _by_tracing(name: str, body: Any, dtypes: Any, declared: Mapping[str, Any]) -> _Definition:
    """Return the operator of a body, which is put in its place; kernels call it to reduce by it."""
    if dtypes is not None:
        raise OperandError(
            f"Expected dtypes= beside c= and numpy= alone, found it beside the body of {name}",
            hint="leave it out: the types of a body follow from what it is made of",
        )
    names = _arguments(name, body)
    traced = _traced(name, body, names)
    expression = written_out(traced)
    algebra = _algebra(name, len(names), declared)
    signature = f"{names} {expression!r} {algebra}"
    digest = hashlib.sha256(signature.encode()).hexdigest()[:16]
    operator = Operator(
        name, name, len(names), f"{name}_{digest}", 4, linear=(False,) * len(names),
        body=_substituting(expression, names), evaluate=_numeric(traced, names), **algebra,
    )  # fmt: skip
    kinds = check_properties(name, operator.evaluate, len(names), declared)
    if operator.reduces:
        operator = replaced(operator, loops=tuple(_reducible(operator, names, expression, kinds)))
    kernel_function = partial(_kernel_function, operator.c_operator, names, expression)
    return _Definition(operator, digest, kernel_function)


def _reducible(operator: Operator, names: tuple[str, ...], body: Expr, kinds: str) -> Iterator[str]:
    """Yield the types of these kinds that a function keeps and that hold its identity."""
    for dtype in map(np.dtype, SCALARS):
        try:
            result_dtype = expression_dtype(body, dict.fromkeys(names, dtype))
        except OperandTypeError:
            continue
        if result_dtype == dtype and dtype.kind in kinds and holds(dtype, operator.identity):
            yield dtype.name


def _kernel_function(name: str, names: tuple[str, ...], body: Expr) -> KernelFunction:
    """Return the function that kernels call where they do not inline the body, as in reductions."""
    from taco_py.compiler.lower.function_bodies import function_of_body

    return function_of_body(name, names, body, SCALARS)


def _by_text(
    name: str, sources: tuple[Any, Any, Any], dtypes: Any, declared: Mapping[str, Any]
) -> _Definition:
    """Return the operator of C text, which kernels call."""
    body, numpy, c = sources
    if body is not None or numpy is None or c is None:
        raise OperandTypeError(
            f"Expected a body of {name}, or both numpy= and c=",
            hint=f'write tp.function("{name}", numpy=lambda x: …, c="…")',
        )
    from taco_py.data.tensors.user_functions import c_text_of

    compiled = c_text_of(name, numpy, c, dtypes)
    loops, arity = tuple(compiled.counterpart.results), len(compiled.parameters)
    algebra = _algebra(name, arity, declared)
    digest = hashlib.sha256(f"{compiled.digest} {algebra}".encode()).hexdigest()[:16]
    operator = Operator(
        name, name, arity, compiled.function.name, 4, linear=(False,) * arity, loops=loops,
        evaluate=compiled.counterpart, **algebra,
    )  # fmt: skip
    for type in loops if operator.reduces else ():
        gives = compiled.counterpart.results[type]
        if gives != type or not holds(np.dtype(type), operator.identity):
            what = f"{gives} of {type}" if gives != type else f"{operator.identity} for {type}"
            raise OperandError(
                f"Expected results of {name}, and its identity, in the type of its arguments, for "
                f"it reduces, found {what}",
                hint="leave associative= out, or say the types with dtypes=",
            )
    kinds = "".join(np.dtype(dtype).kind for dtype in loops)
    check_properties(name, operator.evaluate, arity, declared, kinds)
    return _Definition(operator, digest, lambda: compiled.function)


def _algebra(name: str, arity: int, declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declared properties as the fields of an operator. Raises OperandError."""
    annihilator = declared["annihilator"]
    zeros = annihilator if isinstance(annihilator, tuple) else (annihilator,) * arity
    if len(zeros) != arity:
        raise OperandError(
            f"Expected an annihilator of {name} for each of {arity} arguments, found {len(zeros)}",
            hint="None stands for an argument without one, as in annihilator=(0, None)",
        )
    identity = declared["identity"]
    return {
        "commutative": bool(declared["commutative"]), "associative": bool(declared["associative"]),
        "idempotent": bool(declared["idempotent"]), "identity": identity,
        "right_identity": identity, "annihilators": zeros,
    }  # fmt: skip


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
    """Return the names of a function's arguments. Raises OperandTypeError where it has no such
    list."""
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
    if not parameters or any(parameter.kind not in kinds for parameter in parameters):
        raise OperandTypeError(
            f"Expected a Python function of one argument or several for {name}",
            hint="write its arguments out, as in lambda x, y: …",
        )
    return tuple(p.name for p in parameters if p.default is inspect.Parameter.empty)


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
    """Return the function that substitutes arguments into a body."""

    def body(*args: Expr) -> Expr:
        of = dict(zip(names, args, strict=True))
        return map_accesses(traced, lambda access: of[access.tensor])

    return body


def _numeric(traced: Expr, names: tuple[str, ...]) -> Callable[..., Any]:
    """Return the function of NumPy arrays."""
    return lambda *args: value_of(traced, dict(zip(names, args, strict=True)))
