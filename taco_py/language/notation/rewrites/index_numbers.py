"""An index as a number, and how many values it has: what a text reads beside its operands.

    y[i] = x[i] * i           i is 0, 1, 2, … where it stands by itself
    m[i] = A[i,j] / size(j)   size(j) is the number of values of j

Both are int64. They are accesses whose tensors no text can name, at a subscript, so that operands
are made for them as for other subscripts that are more than an index. An operand of the name is
meant where the call has one.
"""

from __future__ import annotations

from collections.abc import Iterable

from taco_py.language.diagnostics.source import Span
from taco_py.language.notation.nodes import Access, Assignment, Subscript
from taco_py.language.notation.tree import walk

INDEX, SIZE = "index ", "size "
"""What the names begin with, in which no name of a text has its blank."""


def index_number(name: str, span: Span | None = None) -> Access:
    """Return the index of a name as a number."""
    return Access(INDEX + name, (name,), span, (Subscript(((name, 1),)),))


def index_size(name: str, span: Span | None = None) -> Access:
    """Return the number of values of an index."""
    return Access(SIZE + name, (), span, (Subscript(),))


def index_of(access: Access) -> str:
    """Return the index that an access is a number of."""
    return access.tensor.partition(" ")[2]


def is_size(access: Access) -> bool:
    """Tell whether an access is the number of values of an index."""
    return access.tensor.startswith(SIZE)


def numbers_of(assignment: Assignment) -> tuple[Access, ...]:
    """Return the accesses that are numbers of indices."""
    nodes = (node for node, _ in walk(assignment.value))
    return tuple(a for a in nodes if isinstance(a, Access) and a.is_number)


def named_like_numbers(assignments: Iterable[Assignment]) -> frozenset[str]:
    """Return the names of operands that would be meant by what is read as a number of an index."""
    found = (access for each in assignments for access in numbers_of(each))
    return frozenset("size" if is_size(access) else index_of(access) for access in found)
