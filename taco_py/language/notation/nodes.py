"""Index notation: what the user wrote, as immutable values.

    y[i] = sum(j, A[i,j] * x[j]) + b[i]

is `Assignment(y, Call(ADD, (Reduce(ADD, "j", Call(MUL, (A, x))), b)))` with an `Access` for each
tensor, such as `Access("A", ("i", "j"))`. Spans say where in the text a node came from; they take
no part in equality or hashing.
"""

from __future__ import annotations

from dataclasses import field

from codegen.records import dataclass
from taco_py.language.diagnostics.source import Span
from taco_py.language.notation.operators import Operator


@dataclass(frozen=True, slots=True)
class Subscript:
    """An integer: a constant, multiples of indices, and multiples of numbers that operands hold.

    2*i + p[j] - 1  is  Subscript((("i", 2),), ((p[j], 1),), -1)

    Each index, and each access, occurs once, with a factor that is not 0.
    """

    indices: tuple[tuple[str, int], ...] = ()
    gathered: tuple[tuple[Access, int], ...] = ()
    constant: int = 0

    @property
    def index(self) -> str | None:
        """Return the index that this subscript is, None where it is more than an index alone."""
        if self.gathered or self.constant or len(self.indices) != 1:
            return None
        ((name, factor),) = self.indices
        return name if factor == 1 else None

    @property
    def names(self) -> tuple[str, ...]:
        """Return the indices that it depends on, each once."""
        inner = (name for access, _ in self.gathered for name in access.indices)
        return tuple(dict.fromkeys((*(name for name, _ in self.indices), *inner)))


@dataclass(frozen=True, slots=True)
class Access:
    """The element of `tensor` at `indices`; no indices for a scalar.

    subscripts  one a mode where some are more than an index, as in A[p[i],j+1]; `indices` then has
                each index that they depend on once. The compiler has none: operands are made of
                which the indices alone are the subscripts (`taco_py/calls/indexed/`).
    """

    tensor: str
    indices: tuple[str, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    subscripts: tuple[Subscript, ...] = field(default=(), repr=False)

    @property
    def is_number(self) -> bool:
        """Tell whether it is a number that an index has (`rewrites/index_numbers.py`), of no
        operand."""
        return self.tensor.startswith(("index ", "size "))

    @property
    def modes(self) -> tuple[Subscript, ...]:
        """Return a subscript for each mode."""
        return self.subscripts or tuple(Subscript(((name, 1),)) for name in self.indices)


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A number in the expression.

    Without `dtype` it adapts to its operands' dtype as a Python scalar does in NumPy (NEP 50). With
    one (a NumPy name) it promotes as a NumPy scalar of that dtype does: what the compiler puts in
    has a dtype, such as the zero a negative term is subtracted from; the text has no syntax for it.

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
    """`operator` applied to `args`. Associative operators are binary; nesting says the grouping."""

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
