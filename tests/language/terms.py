"""Random expressions of the whole language, with what is needed to compare their values.

    Term("(exp(A[i,j]) + x[j])", {i, j}, exact=False, bound=11, …)

A value is exact where every order of its operations gives the same number: whole numbers, halves
and quarters of small size. Functions that jump (comparisons, `floor`, `where`) and those that are
steep (`log`, divisors) get exact arguments, so that two right evaluations agree in every digit
there, and within rounding elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

MOST = 5
"""The largest size of an index."""

JUMPS = ("sign", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "logical_not")
KEEPS = ("abs", "relu", "real", "conj", "square", "-", "+", "not ", "~", "imag")
STEEP = (
    "sqrt", "cbrt", "log", "log1p", "log2", "log10", "asin", "acos", "atan", "asinh", "acosh",
    "atanh", "erf", "tanh", "angle", "reciprocal",
)  # fmt: skip
GROWS = ("exp", "expm1", "exp2", "sinh", "cosh", "sigmoid", "sin", "cos", "tan")
SPECIAL = frozenset(
    ("log", "log2", "log10", "log1p", "acosh", "atanh", "reciprocal", "sqrt", "asin", "acos")
)
"""Functions that make infinities or NaN of small numbers."""

MIXES = ("+", "-", "*", "+", "*", "min", "max")
EXACT_ONLY = (
    "<", "<=", ">", ">=", "==", "!=", "&", "|", "^", "<<", ">>", "//", "%", "and", "or",
    "logical_xor", "logical_and", "logical_or", "fmin", "fmax", "copysign",
)  # fmt: skip
ROUNDS = ("/", "/", "hypot", "atan2", "**")
CALLED = frozenset(
    (
        "min", "max", "fmin", "fmax", "hypot", "atan2", "copysign", "logical_xor", "logical_and",
        "logical_or",
    )
)  # fmt: skip
ANSWERS = frozenset(("<", "<=", ">", ">=", "==", "!=", "and", "or", "logical_xor", "logical_and"))

REDUCTIONS = ("sum", "sum", "prod", "min", "max", "any", "all", "count", "mean", "var")
PLACES = ("argmin", "argmax")


@dataclass(frozen=True, slots=True)
class Term:
    """An expression, and what values it may have.

    indices  those that are free in it
    exact    whether it has the same digits in every order of operations
    bound    no finite value is larger
    grain    its values are multiples of 2**-grain
    special  whether it may make infinities or NaN
    sums     whether it adds up over an index
    """

    text: str
    indices: frozenset[str]
    exact: bool = True
    bound: float = 3.0
    grain: int = 1
    special: bool = False
    sums: bool = False

    def settled(self) -> Term:
        """The same, not exact where sums of such numbers are rounded in 24 bits."""
        return self if self.bound * 2**self.grain < 2**20 else replace(self, exact=False)


Leaf = Callable[[Random], Term]


def term(random: Random, depth: int, leaf: Leaf, *, exact: bool = False) -> Term:
    """An expression of operands that `leaf` draws.

    exact  whether its value has to be
    """
    kind = random.random()
    if depth == 0 or kind < 0.15:
        return leaf(random)
    if kind < 0.40:
        return _called(random, term(random, depth - 1, leaf, exact=True), exact)
    if kind < 0.80:
        return _joined(random, depth, leaf, exact)
    if kind < 0.88:
        return _chosen(random, depth, leaf, exact)
    return _reduced(random, term(random, depth - 1, leaf, exact=exact), exact)


def _called(random: Random, arg: Term, exact: bool) -> Term:
    names = [*JUMPS, *KEEPS, *KEEPS]
    if not exact:
        names += STEEP
        if arg.bound <= 6:
            names += [*GROWS, *GROWS]
    name = random.choice(names)
    text = f"({name}({arg.text}))" if name in ("-", "+", "not ", "~") else f"{name}({arg.text})"
    found = replace(arg, text=text, special=arg.special or name in SPECIAL)
    if name in ("square",):
        return replace(found, bound=arg.bound**2, grain=2 * arg.grain).settled()
    if name in STEEP:
        return replace(found, exact=False, bound=max(arg.bound, 1) * 2.0**arg.grain)
    if name in GROWS:
        return replace(found, exact=False, bound=500.0)
    return replace(found, bound=arg.bound + 1)


def _joined(random: Random, depth: int, leaf: Leaf, exact: bool) -> Term:
    kind = random.random()
    if kind < 0.6:
        name, inner = random.choice(MIXES), exact
    elif kind < 0.85 or exact:
        name, inner = random.choice(EXACT_ONLY), True
    else:
        name, inner = random.choice(ROUNDS), True
    left = term(random, depth - 1, leaf, exact=inner)
    right = term(random, depth - 1, leaf, exact=inner)
    if name in CALLED:
        text = f"{name}({left.text}, {right.text})"
    else:
        text = f"({left.text} {name} {right.text})"
    return _of_both(name, text, left, right)


def _of_both(name: str, text: str, left: Term, right: Term) -> Term:
    found = Term(
        text,
        left.indices | right.indices,
        left.exact and right.exact and name not in ROUNDS,
        left.bound + right.bound,
        max(left.grain, right.grain),
        left.special or right.special or name in ("/", "**"),
        left.sums or right.sums,
    )
    match name:
        case "*":
            bound, grain = MOST * left.bound * right.bound, left.grain + right.grain
            return replace(found, bound=bound, grain=grain).settled()
        case "/":
            return replace(found, bound=left.bound * 2.0**right.grain)
        case "**":
            return replace(found, bound=min(left.bound + 2, 1e9) ** min(right.bound + 1, 30))
        case "<<" | "^" | "|" | "&":
            return replace(found, bound=2.0**64 if name == "<<" else 2 * found.bound)
    return found if name in ANSWERS else found.settled()


def _chosen(random: Random, depth: int, leaf: Leaf, exact: bool) -> Term:
    first, left, right = (
        term(random, depth - 1, leaf, exact=exact or place == 0) for place in range(3)
    )
    if random.random() < 0.3 and exact:
        return _of_three("clip", first, left, right)
    return _of_three("where", first, left, right)


def _of_three(name: str, first: Term, left: Term, right: Term) -> Term:
    both = _of_both("+", "", left, right)
    return replace(
        both,
        text=f"{name}({first.text}, {left.text}, {right.text})",
        indices=first.indices | both.indices,
        special=first.special or both.special,
        sums=first.sums or both.sums,
        bound=both.bound + (first.bound if name == "clip" else 0),
        grain=max(first.grain, both.grain),
    ).settled()


def _reduced(random: Random, body: Term, exact: bool) -> Term:
    if not body.indices:
        return body
    count = random.choice((1, 1, 1, len(body.indices)))
    return reduction(random, body, sorted(body.indices)[-count:], exact=exact)


def reduction(random: Random, body: Term, over: Sequence[str], *, exact: bool = False) -> Term:
    """A reduction of an expression over some of its indices."""
    names = ["sum", "min", "max"]
    if body.exact:
        names += ["any", "all", "count"]
        if not exact:
            names += ["prod", "mean", "var"]
        if len(over) == 1:
            names += PLACES
    name = random.choice(names)
    indices = over[0] if len(over) == 1 else f"({', '.join(over)})"
    elements = MOST ** len(over)
    found = replace(
        body,
        text=f"{name}({indices}, {body.text})",
        indices=body.indices - {*over},
        sums=body.sums or name in ("sum", "mean", "var"),
    )
    match name:
        case "sum":
            return replace(found, bound=body.bound * elements).settled()
        case "prod":
            return replace(found, exact=False, bound=min(body.bound + 1, 1e6) ** elements)
        case "var":
            return replace(found, exact=False, bound=4 * body.bound**2)
        case "mean":
            return replace(found, exact=False)
        case "count" | "argmin" | "argmax":
            return replace(found, bound=float(elements), grain=0)
    return found
