"""Accesses with subscripts as accesses of other operands, which have indices alone.

    y[i] = x[i+k] * w[k]     →   y[i] = x_at_i_k[i,k] * w[k]       x_at_i_k[i,k] is x[i+k]
    y[p[i]] += x[i]          →   y[r] += sum(i, y_at_p_i[r,i] * x[i])
                                 y_at_p_i[r,i] is 1 where r = p[i], and stores nothing elsewhere

The compiler reads what is on the right; `make_operands` makes the operands.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from codegen.names import Names
from codegen.records import dataclass
from taco_py.calls.indexed.scattered import Meeting
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access, Assignment, Expr, Subscript
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import map_accesses


@dataclass(frozen=True, slots=True)
class Derived:
    """An operand `name` with the modes `access.indices`, whose elements are those of `access`.

    source_access  the access as the text has it; `access` has a subscript for each mode
    """

    name: str
    access: Access
    source_access: Access


@dataclass(frozen=True, slots=True)
class Selection:
    """An operand that is 1 where its first mode is a subscript, and stores nothing elsewhere.

    subscript  whose indices are the other modes
    mode       of the result, which the subscript says
    """

    name: str
    subscript: Subscript
    mode: int


@dataclass(frozen=True, slots=True)
class Plain:
    """An assignment whose subscripts are indices alone, and the operands that it reads besides."""

    assignment: Assignment
    derived: tuple[Derived, ...]
    selections: tuple[Selection, ...]


def without_subscripts(
    assignment: Assignment,
    covers_operand: Callable[[Access], bool],
    ordered: Callable[[Access], tuple[str, ...]],
    meets: Callable[[], Meeting],
    names: Names | None = None,
) -> Plain:
    """Return the assignment over derived operands.

    covers_operand    whether an access reads its operand as it is
    ordered  the indices of an access in the order of the modes of its operand
    meets    finds how what meets in one place is reduced
    names    from which to take new ones; None for those that the assignment does not use
    """
    if names is None:
        uses = (assignment.target, *accesses(assignment))
        names = Names(access.tensor for access in uses)
    derived: dict[Access, Derived] = {}

    def plain(access: Access) -> Access:
        if not (access.subscripts or access.is_number) and covers_operand(access):
            return access
        if access not in derived:
            modes = Access(access.tensor, ordered(access), access.span, access.modes)
            derived[access] = Derived(names.fresh(name_of(access)), modes, access)
        operand = derived[access]
        return Access(operand.name, operand.access.indices, access.span)

    value = map_accesses(assignment.value, plain)
    target, value, selections = _scattered(assignment, value, meets, names)
    rewritten = replace(assignment, target=target, value=value)
    return Plain(rewritten, tuple(derived.values()), selections)


def name_of(access: Access) -> str:
    """Return a name that reads like an access.

    >>> name_of(Access("x", ("i",), None, (Subscript((("i", 2),), (), 1),)))
    'x_at_2_i_1'
    """
    if access.is_number:
        return access.tensor.replace(" ", "_")
    inside = to_text(access).partition("[")[2]
    return f"{access.tensor}_at_{re.sub(r'[^A-Za-z0-9]+', '_', inside).strip('_')}"


def _scattered(
    assignment: Assignment, value: Expr, meets: Callable[[], Meeting], names: Names
) -> tuple[Access, Expr, tuple[Selection, ...]]:
    """Return the target with indices alone, the value that it takes, and the selections of that."""
    target = assignment.target
    if not target.subscripts:
        return target, value, ()
    fresh = Names(all_indices(assignment))
    modes, selections, selected = list[str](), list[Selection](), list[Access]()
    for place, mode in enumerate(target.subscripts):
        index = mode.index
        if index is not None and index in _fixed(target):
            modes.append(index)
            continue
        modes.append(fresh.fresh(f"r{place}"))
        name = names.fresh(name_of(replace(target, subscripts=(mode,))))
        selections.append(Selection(name, mode, place))
        selected.append(Access(name, (modes[-1], *mode.names), target.span))
    summed = tuple(index for index in target.indices if index not in modes)
    value = meets().reduced(value, tuple(selected), summed)
    return Access(target.tensor, tuple(modes), target.span), value, tuple(selections)


def _fixed(target: Access) -> frozenset[str]:
    """Return the indices that are subscripts of the target by themselves, and occur in no other."""
    uses = [index for mode in target.subscripts for index in mode.names]
    return frozenset(index for index in uses if uses.count(index) == 1)
