"""The order in which a result's modes are stored, where nobody asks for one.

Which indices are compressed follows from the operands; in which order they are stored does so only
as far as the operands agree. Where they do not, some must be copied, or the result is met out of
order, and the least of that decides:

    C[i,j] = A[i,j] + B[i,j]      A in ss with few entries, B in ss:1,0 with many  →  C in ss:1,0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations

from codegen.names import Names
from taco_py.cost.machine import GAIN
from taco_py.formats import Format
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Access, Assignment
from taco_py.plan.algebra.normal_form import apart
from taco_py.plan.costs import best_cost, chain_cost
from taco_py.plan.ir.goal import Request, statistics
from taco_py.plan.ir.nodes import Operand
from taco_py.plan.split import split
from taco_py.plan.splitter import Splitter

MODES = 3
"""Modes up to which every order is compared."""


def arranged(assignment: Assignment, operands: Mapping[str, Operand], request: Request) -> Request:
    """The request for a sparse result whose modes are stored as costs least, with a note for
    explain() where that is not the usual order.

    Orders are compared by the last kernel of the usual order's, and the best of them then by all
    kernels that are best for it.

    Raises what planning raises.
    """
    usual = request.type.format
    others = tuple(_others(assignment, operands, usual))
    if not others:
        return request
    assignment = apart(assignment, operands)
    before = _cost(assignment, operands, request)
    asked = {form: _in(request, form) for form in others}
    last = {form: before.in_format(asked[form]) for form in others}
    form = min(others, key=lambda other: last[other])
    if last[form] >= before.last:
        return request
    found = _cost(assignment, operands, asked[form])
    if found.whole * GAIN >= before.whole:
        return request
    why = f"about {found.whole:.2g} operations instead of {before.whole:.2g} as {usual}"
    return replace(asked[form], stored=f"{assignment.target.tensor} stored as {form}: {why}")


def _others(
    assignment: Assignment, operands: Mapping[str, Operand], usual: Format
) -> Iterator[Format]:
    """The format in other orders of modes in which each index has the level that it had.

    None for dense results, for diagonals, and where all sparse operands store their indices alike.
    """
    if usual.is_dense or not 1 < usual.order <= MODES:
        return
    met = tuple(accesses(assignment.value))
    if any(len(set(a.indices)) < operands[a.tensor].type.format.order for a in met):
        return
    stored = {tuple(_as_stored(assignment, access, operands)) for access in met}
    if sum(len(indices) > 1 for indices in stored) < 2:
        return
    level = dict(zip(usual.mode_order, usual.levels, strict=True))
    for order in permutations(range(usual.order)):
        levels = tuple(level[mode] for mode in order)
        if order != usual.mode_order and levels == usual.levels:
            yield Format(levels, order)


def _as_stored(
    assignment: Assignment, access: Access, operands: Mapping[str, Operand]
) -> Iterator[str]:
    """The result's indices in the order in which a sparse operand stores them."""
    form = operands[access.tensor].type.format
    for mode in () if form.is_dense else form.mode_order:
        if access.indices[mode] in assignment.target.indices:
            yield access.indices[mode]


def _in(request: Request, form: Format) -> Request:
    return replace(request, type=replace(request.type, format=form))


@dataclass(frozen=True, slots=True)
class _Kernels:
    """The kernels that make a result: what is known of their operands, and what they cost.

    assignment  the last of them
    last        what it costs
    whole       what all cost, with the temporaries between them
    """

    splitter: Splitter
    assignment: Assignment
    last: float
    whole: float

    def in_format(self, request: Request) -> float:
        """What the last costs where the result is stored otherwise."""
        return best_cost(self.splitter, self.assignment, request)


def _cost(assignment: Assignment, operands: Mapping[str, Operand], request: Request) -> _Kernels:
    """The kernels that make the result, and their cost."""
    names = Names((*operands, assignment.target.tensor))
    parts = split(assignment, operands, request, names)
    sizes = statistics(assignment, operands).sizes
    splitter = Splitter(dict(parts.operands), request, names, sizes, [], [])
    (*before, final) = parts.assignments
    last = best_cost(splitter, final, request)
    return _Kernels(splitter, final, last, chain_cost(splitter, before, final))
