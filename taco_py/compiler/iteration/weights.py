"""Operands by which the iterations of a loop have different numbers of entries."""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.compiler.concrete.nodes import Statement
from taco_py.compiler.concrete.tree import read_in
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import Provenance


def weighed_operands(
    problem: Problem, provenance: Provenance, variable: str, statement: Statement
) -> Iterator[Access]:
    """Yield the sparse operands whose outermost level a loop over `variable` partitions.

    `variable` runs over the index of that level, or over tiles of it, in `statement`.
    """
    index = provenance.roots(variable)[0]
    operands = dict(problem.operands)
    for access in read_in(statement):
        if access.tensor not in operands or not provenance.counts_ranges(variable):
            continue
        form = operands[access.tensor].format
        usual = all(level.kind.usual for level in form.levels)
        if usual and not form.is_dense and form.stored(access.indices)[0] == index:
            yield access
