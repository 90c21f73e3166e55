"""Index notation: what the user wrote, as immutable values.

    y[i] = sum(j, A[i,j] * x[j]) + b[i]

is `Assignment(Access("y", ("i",)), Call(ADD, (Reduce(ADD, "j", Call(MUL, …)), Access("b", ("i",)))))`.
Spans say where in the text a node came from; they take no part in equality or hashing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from taco_py.diagnostics.source import Span
from taco_py.notation.operators import Operator


@dataclass(frozen=True, slots=True)
class Access:
    """The element of `tensor` at `indices`; no indices for a scalar."""

    tensor: str
    indices: tuple[str, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A number in the expression. An int or float adapts to its operands' dtype as a Python scalar does in NumPy."""

    value: bool | int | float | complex
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`operator` applied to `args`. Associative operators are binary here; nesting says the grouping."""

    operator: Operator
    args: tuple[Expr, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reduce:
    """`operator` over all values of `index` of `body`."""

    operator: Operator
    index: str
    body: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


Expr = Access | Literal | Call | Reduce


@dataclass(frozen=True, slots=True)
class Assignment:
    """`target = value`, or `target op= value` when `operator` is given."""

    target: Access
    value: Expr
    operator: Operator | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
