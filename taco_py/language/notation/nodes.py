"""Index notation as immutable values.

    y[i] = sum(j, A[i,j] * x[j]) + b[i]

is `Assignment(y, Call(ADD, (Reduce(ADD, "j", Call(MUL, (A, x))), b)))` with an `Access` for each
tensor, such as `Access("A", ("i", "j"))`. Spans locate a node in the text; equality and hashing
ignore them.
"""

from __future__ import annotations

from dataclasses import field

from codegen.records import dataclass
from taco_py.language.diagnostics.source import Span
from taco_py.language.notation.operators import Operator


@dataclass(frozen=True, slots=True)
class Subscript:
    """An integer: a constant, multiples of indices, and multiples of gathered operand elements.

    2*i + p[j] - 1  is  Subscript((("i", 2),), ((p[j], 1),), -1)

    Each index, and each access, occurs once, with a factor that is not 0.
    """

    indices: tuple[tuple[str, int], ...] = ()
    gathered: tuple[tuple[Access, int], ...] = ()
    constant: int = 0

    @property
    def index(self) -> str | None:
        """Return the index if this subscript is an index alone, else None."""
        if self.gathered or self.constant or len(self.indices) != 1:
            return None
        ((name, factor),) = self.indices
        return name if factor == 1 else None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the indices that the subscript depends on, without duplicates."""
        inner = (name for access, _ in self.gathered for name in access.indices)
        return tuple(dict.fromkeys((*(name for name, _ in self.indices), *inner)))


@dataclass(frozen=True, slots=True)
class Access:
    """The element of `tensor` at `indices`; no indices for a scalar.

    subscripts  one a mode where some are more than an index, as in A[p[i],j+1]; `indices` then has
                the indices that they depend on, without duplicates. The compiler meets none:
                operands are built whose subscripts are indices alone (`taco_py/calls/indexed/`).
    """

    tensor: str
    indices: tuple[str, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    subscripts: tuple[Subscript, ...] = field(default=(), repr=False)

    @property
    def is_number(self) -> bool:
        """Tell whether the access is the number or size of an index
        (`rewrites/index_numbers.py`)."""
        return self.tensor.startswith(("index ", "size "))

    @property
    def modes(self) -> tuple[Subscript, ...]:
        """Return the subscript of each mode."""
        return self.subscripts or tuple(Subscript(((name, 1),)) for name in self.indices)


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A number in the expression.

    Without `dtype` it adapts to the other operands' dtype as a Python scalar does in NumPy (NEP
    50). With one (a NumPy name) it promotes as a NumPy scalar of that dtype does: literals that the
    compiler inserts have a dtype, such as the zero a negative term is subtracted from; the text has
    no syntax for it.

    Two literals are equal when they mean the same in every expression: 1, 1.0 and True are three,
    and so are 0.0 and -0.0, though Python calls them equal; a NaN equals itself.
    """

    value: bool | int | float | complex
    span: Span | None = field(default=None, repr=False)
    dtype: str | None = None

    def _key(self) -> tuple[str, str | None]:
        return repr(self.value), self.dtype

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Literal) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, slots=True)
class Call:
    """`operator` applied to `args`; associative operators are binary, grouped by nesting."""

    operator: Operator
    args: tuple[Expr, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reduce:
    """The reduction of `body` by `operator` over all values of `index`."""

    operator: Operator
    index: str
    body: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


Expr = Access | Literal | Call | Reduce


@dataclass(frozen=True, slots=True)
class Assignment:
    """`target = value`, or `target op= value` with an `operator`."""

    target: Access
    value: Expr
    operator: Operator | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
