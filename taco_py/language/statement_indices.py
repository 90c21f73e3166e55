"""Statements whose indices have one size each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.names import Names
from taco_py.language.notation.checks import accesses, rename
from taco_py.language.notation.nodes import Assignment


def with_own_indices(
    statements: Sequence[Assignment], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Assignment, ...]:
    """Rename the indices of statements that have another size in an earlier statement.

    y[i] = x[i];  z[i] = v[i], where v is longer  →  z[i_1] = v[i_1]

    shapes  of the operands; each mode of an access has an index of its own
    """
    if len(statements) == 1:
        return tuple(statements)
    shapes, sizes = dict(shapes), dict[str, int]()
    result = []
    for statement in statements:
        reads = accesses(statement)
        extents = {i: n for a in reads for i, n in zip(a.indices, shapes[a.tensor], strict=True)}
        shapes[statement.target.tensor] = tuple(extents[i] for i in statement.target.indices)
        names = Names({*sizes, *extents})
        new = {i: names.fresh(i) for i, n in extents.items() if sizes.get(i, n) != n}
        sizes.update((new.get(i, i), n) for i, n in extents.items())
        result.append(rename(statement, indices=new) if new else statement)
    return tuple(result)
