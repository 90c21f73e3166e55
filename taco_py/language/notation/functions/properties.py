"""Declared properties of users' functions, checked on random numbers.

    zero_preserving   f(0, …, 0) = 0
    commutative       f(x, y) = f(y, x)
    associative       f(f(x, y), z) = f(x, f(y, z))
    idempotent        f(x, x) = x
    identity          f(e, x) = f(x, e) = x, also of e itself
    annihilator       f(a, …) = a in any place, or in the places that have one: (0, None)

A false declaration is an error that shows a counterexample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.notation.dtypes import holds

COUNT = 200
BINARY = ("commutative", "associative", "idempotent", "identity")
"""Properties of functions of two arguments."""
REAL = "if"

Function = Callable[..., Any]
Numbers = tuple[Any, ...]
Case = tuple[str, tuple[Any, ...], Any, Any]
"""The equation, its numbers, and both sides."""


def check_properties(
    name: str, function: Function, arity: int, declared: Mapping[str, Any], kinds: str = REAL
) -> str:
    """Compare both sides of each declared property on numbers of each kind that a function takes.

    kinds  NumPy's letters of the kinds of numbers for which the properties have to hold

    Returns the letters of all kinds for which they hold. Raises OperandError with the first numbers
    for which a property does not hold, and where a function takes no kind of numbers.
    """
    claims = {claim: v for claim, v in declared.items() if v is not None and v is not False}
    for property in BINARY:
        if property in claims and arity != 2:
            raise OperandError(
                f"Expected {property} of a function of two arguments, found {name} of {arity}",
                hint=f"leave out {property}",
            )
    checked, holding = set[str](), set[str]()
    for numbers in _samples(arity):
        kind = numbers[0].dtype.kind
        try:
            checked |= _check(name, function, numbers, arity, claims)
        except OperandError:
            if kind in kinds:
                raise
        else:
            holding.add(kind)
    missing = next((claim for claim in claims if claim not in checked), None)
    if missing is not None:
        raise OperandError(
            f"Expected numbers for which {name} shows that it is {_said(missing)}, found none that "
            "it takes",
            hint=f"leave out {missing}, or mend the function",
        )
    return "".join(sorted(holding))


def _check(
    name: str, function: Function, numbers: Numbers, arity: int, claims: Mapping[str, Any]
) -> set[str]:
    """Return the properties that were checked on some numbers. Raises OperandError."""
    checked = set()
    for property, value in claims.items():
        for equation, arguments, left, right in _cases(property, function, numbers, arity, value):
            checked.add(property)
            _compare(name, property, equation, arguments, left, right)
    return checked


def _cases(
    property: str, function: Function, numbers: tuple[Any, ...], arity: int, value: Any
) -> list[Case]:
    """Return the equations of a property; none for a kind of numbers that the function rejects."""
    try:
        with np.errstate(all="ignore"):
            return list(_EQUATIONS[property](function, numbers, arity, value))
    except (TypeError, ValueError):
        return []


def _samples(arity: int) -> Iterator[tuple[Any, ...]]:
    """Yield arrays of random arguments, at least three, for each kind of numbers."""
    random = np.random.default_rng(27)
    count = max(arity, 3)
    yield tuple(random.integers(-9, 10, COUNT) for _ in range(count))
    yield tuple(random.integers(0, 10, COUNT).astype(np.uint64) for _ in range(count))
    yield tuple(random.standard_normal(COUNT) * 3 for _ in range(count))
    yield tuple(random.standard_normal(COUNT).astype(np.float32) for _ in range(count))
    yield tuple(
        random.standard_normal(COUNT) + 1j * random.standard_normal(COUNT) for _ in range(count)
    )
    yield tuple(random.random(COUNT) < 0.5 for _ in range(count))


def _zero(f: Function, x: Numbers, arity: int, _: Any) -> Iterator[Case]:
    zeros = tuple(np.zeros_like(array) for array in x)[:arity]
    result = f(*zeros)
    yield "f(0) = 0", zeros, result, np.zeros_like(np.asarray(result))


def _commutative(f: Function, x: Numbers, arity: int, _: Any) -> Iterator[Case]:
    yield "f(x, y) = f(y, x)", x[:2], f(x[0], x[1]), f(x[1], x[0])


def _associative(f: Function, x: Numbers, arity: int, _: Any) -> Iterator[Case]:
    yield (
        "f(f(x, y), z) = f(x, f(y, z))", x[:3], f(f(x[0], x[1]), x[2]), f(x[0], f(x[1], x[2])),
    )  # fmt: skip


def _idempotent(f: Function, x: Numbers, arity: int, _: Any) -> Iterator[Case]:
    yield "f(x, x) = x", x[:1], f(x[0], x[0]), x[0]


def _identity(f: Function, x: Numbers, arity: int, e: Any) -> Iterator[Case]:
    yield f"f({e}, x) = x", x[:1], f(e, x[0]), x[0]
    yield f"f(x, {e}) = x", x[:1], f(x[0], e), x[0]
    dtype = x[0].dtype
    alone = np.full(1, e, dtype if holds(dtype, e) else None)
    yield f"f({e}, x) = x", (alone,), f(e, alone), alone


def _annihilator(f: Function, x: Numbers, arity: int, a: Any) -> Iterator[Case]:
    values = a if isinstance(a, tuple) else (a,) * arity
    for place, value in enumerate(values):
        if value is not None:
            args = [*x[:place], value, *x[place:]][:arity]
            letters = iter("xyz")
            inside = ", ".join(str(value) if k == place else next(letters) for k in range(arity))
            other_arguments = tuple(argument for k, argument in enumerate(args) if k != place)
            result = f(*args)
            yield (
                f"f({inside}) = {value}",
                other_arguments,
                result,
                np.full(np.shape(result), value),
            )


_EQUATIONS: Mapping[str, Callable[[Function, Numbers, int, Any], Iterator[Case]]] = {
    "zero_preserving": _zero,
    "commutative": _commutative,
    "associative": _associative,
    "idempotent": _idempotent,
    "identity": _identity,
    "annihilator": _annihilator,
}


def _compare(
    name: str, property: str, equation: str, arguments: tuple[Any, ...], left: Any, right: Any
) -> None:
    """Raise OperandError where two sides differ by more than rounding."""
    one, other = np.broadcast_arrays(np.asarray(left), np.asarray(right))
    first = first_difference(one, other)
    if first is None:
        return
    numbers = [np.broadcast_to(argument, one.shape).flat[first].item() for argument in arguments]
    numbers_text = ", ".join(f"{letter} = {x!r}" for letter, x in zip("xyz", numbers, strict=False))
    raise OperandError(
        f"Expected {name} to be {_said(property)}, {equation}, found {one.flat[first].item()!r} "
        f"and {other.flat[first].item()!r} for {numbers_text}",
        hint=f"leave out {property}, or mend the function",
    )


def _said(property: str) -> str:
    """Describe a function that has a property, for an error."""
    if property in ("identity", "annihilator"):
        return f"of the {property} that is declared"
    return property.replace("_", " ")


def first_difference(one: Any, other: Any) -> int | None:
    """Find the first place where two arrays differ by more than rounding, None without one."""
    with np.errstate(all="ignore"):
        exact = np.asarray(one == other) | (np.asarray(one != one) & np.asarray(other != other))
        eps = 1e-4 if one.dtype.name in _SHORT or other.dtype.name in _SHORT else 1e-9
        near = np.abs(one.astype(complex) - other) <= eps * (1 + np.abs(other.astype(complex)))
        near &= np.isfinite(one.astype(complex)) & np.isfinite(other.astype(complex))
    wrong = np.flatnonzero(~(exact | near))
    return int(wrong[0]) if len(wrong) else None


_SHORT = ("float16", "float32", "complex64")
