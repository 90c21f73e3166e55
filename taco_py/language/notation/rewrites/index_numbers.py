"""Indices as numbers and their sizes: the values that a text reads beside its operands.

    y[i] = x[i] * i           i is 0, 1, 2, … where it stands by itself
    m[i] = A[i,j] / size(j)   size(j) is the number of values of j

Both are int64. They are accesses with subscripts of tensors that no text can name, so that operands
are built for them as for other subscripts that are more than an index. An operand of the same name
takes precedence.
"""

from __future__ import annotations

from collections.abc import Iterable

from taco_py.language.diagnostics.source import Span
from taco_py.language.notation.nodes import Access, Assignment, Subscript
from taco_py.language.notation.tree import walk

INDEX, SIZE = "index ", "size "
"""Prefixes of the tensors' names; no name of a text has their blank."""


def index_number(name: str, span: Span | None = None) -> Access:
    """Build the access that reads an index as a number."""
    return Access(INDEX + name, (name,), span, (Subscript(((name, 1),)),))


def index_size(name: str, span: Span | None = None) -> Access:
    """Build the access that reads the size of an index."""
    return Access(SIZE + name, (), span, (Subscript(),))


def index_of(access: Access) -> str:
    """Return the index that an access reads as a number or the size of."""
    return access.tensor.partition(" ")[2]


def is_size(access: Access) -> bool:
    """Tell whether an access reads the size of an index."""
    return access.tensor.startswith(SIZE)


def numbers_of(assignment: Assignment) -> tuple[Access, ...]:
    """Return the accesses that read numbers or sizes of indices."""
    nodes = (node for node, _ in walk(assignment.value))
    return tuple(a for a in nodes if isinstance(a, Access) and a.is_number)


def named_like_numbers(assignments: Iterable[Assignment]) -> frozenset[str]:
    """Return the names of operands that would take precedence over numbers and sizes of indices."""
    numbers = (access for assignment in assignments for access in numbers_of(assignment))
    return frozenset("size" if is_size(access) else index_of(access) for access in numbers)
