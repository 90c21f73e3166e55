"""Statements whose values say less than the sizes of their targets, completed by an operand.

    p[i,j] = 2.0, of the shape of x    →    p[i,j] = where(stored(x[i,j]), 2.0, 2.0)

So are the gradients of sums: one number, or a row, of the shape of an operand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codegen.names import Names
from taco_py.graph.extents import Extent
from taco_py.graph.nodes import Fact
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.functions.function_table import OR, WHERE
from taco_py.language.notation.nodes import Access, Call, Expr, Reduce
from taco_py.language.notation.operators import COMPILER


def with_sizes(
    value: Expr,
    sizes: Mapping[str, Extent],
    facts: Iterable[tuple[str, Fact]],
    names: Names,
) -> tuple[Expr, tuple[str, ...]]:
    """Return a value that says the sizes of all indices, and the values that it reads for that.

    sizes  of the indices of the target
    facts  of values that may be read, one of each size at least
    """
    candidates = tuple(facts)
    read: list[str] = []
    while missing := [index for index in sizes if index not in free_indices(value)]:
        match = _access(missing[0], sizes, candidates, names)
        if match is None:
            raise InternalError(f"Expected an operand of the size {sizes[missing[0]]}, found none")
        access, extra = match
        condition: Expr = Call(COMPILER["stored"], (access,))
        for index in extra:
            condition = Reduce(OR, index, condition)
        value = Call(WHERE, (condition, value, value))
        read.append(access.tensor)
    return value, tuple(read)


def _access(
    index: str, sizes: Mapping[str, Extent], candidates: Sequence[tuple[str, Fact]], names: Names
) -> tuple[Access, list[str]] | None:
    """Return an access that an index runs over, and its indices that the target does not have."""
    for name, fact in candidates:
        if sizes[index] in fact.shape:
            left = dict(sizes)
            indices, extra = [], []
            first = fact.shape.index(sizes[index])
            for mode, (extent, unit) in enumerate(zip(fact.shape, fact.units, strict=True)):
                if unit:
                    continue
                label = index if mode == first else _match(extent, left, index)
                if label is None:
                    label = names.fresh("i")
                    extra.append(label)
                left.pop(label, None)
                indices.append(label)
            return Access(name, tuple(indices)), extra
    return None


def _match(extent: Extent, sizes: Mapping[str, Extent], besides: str) -> str | None:
    """Return an index of a size."""
    return next((i for i, size in sizes.items() if size == extent and i != besides), None)
